// Socket.IO by hand: packets of Engine.IO 4, whose answers are the echo of what is sent.
import ws from 'k6/ws';
import { check } from 'k6';
import { Trend, Counter } from 'k6/metrics';
const BASE = __ENV.BASE.replace('http', 'ws');
const round = new Trend('socketio_round', true), events = new Counter('socketio_events');
export const options = { vus: 2, iterations: 4, thresholds: { socketio_events: ['count==12'], ws_sessions: ['count==4'], 'ws_msgs_received{kind:io}': ['count==20'] } };
export default function () {
  let begin;
  const log = [];
  const res = ws.connect(`${BASE}/ws/echo?EIO=4&transport=websocket`, { tags: { kind: 'io' } }, (socket) => {
    const emit = (name, data) => socket.send(`42${JSON.stringify([name, data])}`);
    socket.on('open', () => socket.send('40'));
    socket.on('message', (packet) => {
      switch (packet.slice(0, 2)) {
        case '40': begin = Date.now(); emit('chat', { n: 0 }); break;
        case '42': {
          const [name, data] = JSON.parse(packet.slice(2));
          events.add(1);
          round.add(Date.now() - begin);
          log.push(`${name}${data.n}`);
          if (data.n < 2) emit(name, { n: data.n + 1 });
          else socket.send('2');
          break;
        }
        default:
          if (packet === '2') { log.push('ping'); socket.close(); }
      }
    });
  });
  check(res, { connected: (r) => r.status === 101 });
  check(log, { conversation: (all) => all.join() === 'chat0,chat1,chat2,ping' });
}
