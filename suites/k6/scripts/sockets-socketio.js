// Socket.IO over Engine.IO 4, as a browser does it: a session by polling, the upgrade with its probe, events with acknowledgements, the server's ping.
import http from 'k6/http';
import ws from 'k6/ws';
import { check, fail } from 'k6';
import { Counter } from 'k6/metrics';
const BASE = __ENV.SOCKETS;
const acks = new Counter('socketio_acks'), events = new Counter('socketio_events');
export const options = { vus: 3, iterations: 6, thresholds: { socketio_acks: ['count==12'], 'ws_msgs_received{io:yes}': ['count==48'], checks: ['rate==1'] } };
export default function () {
  const opened = http.get(`${BASE}/socket.io/?EIO=4&transport=polling`);
  check(opened, { 'handshake is packet 0': (r) => r.body[0] === '0', upgrades: (r) => JSON.parse(r.body.substring(1)).upgrades.includes('websocket') }) || fail('no session');
  const { sid } = JSON.parse(opened.body.substring(1));
  const at = `${BASE}/socket.io/?EIO=4&transport=polling&sid=${sid}`;
  check(http.post(at, '40', { headers: { 'Content-Type': 'text/plain' } }), { 'connect is accepted': (r) => r.body === 'ok' });
  check(http.get(at), { 'namespace is open': (r) => r.body.startsWith('40{"sid":') });
  let nextId = 0;
  const waiting = {}, log = [];
  const res = ws.connect(`${BASE.replace('http', 'ws')}/socket.io/?EIO=4&transport=websocket&sid=${sid}`, { tags: { io: 'yes' } }, (socket) => {
    const emit = (name, value, done) => {
      if (done) waiting[nextId] = done;
      socket.send(`42${done ? nextId++ : ''}${JSON.stringify([name, value])}`);
    };
    socket.on('open', () => socket.send('2probe'));
    socket.on('message', (packet) => {
      if (packet === '3probe') {
        socket.send('5');
        emit('join', { room: 'a' }, ([answer]) => {
          log.push(`ack ${answer.status} ${answer.value.room}`);
          emit('say', 'hello');
          emit('say', 'grüße 🌍', ([{ value }]) => { log.push(`ack ${value}`); emit('bye', null); });
        });
      } else if (packet === '2') { log.push('ping'); socket.send('3'); }
      else if (packet.startsWith('43')) {
        const [, id, text] = packet.match(/^43(\d+)(.*)$/);
        acks.add(1);
        waiting[id](JSON.parse(text));
      } else if (packet.startsWith('42')) { events.add(1); log.push(JSON.parse(packet.slice(2))[0]); }
    });
    socket.on('close', (code) => log.push(`close ${code}`));
  });
  check(res, { 'status is 101': (r) => r && r.status === 101 });
  check(log.join(), { conversation: (text) => text === 'ack ok a,join:seen,say:seen,ack grüße 🌍,say:seen,bye:seen,ping,close 1000' });
}
