// Phoenix channels with the arrays of its second serializer, in `k6/ws`: timers of the socket, references, binary pushes.
import ws from 'k6/ws';
import { check } from 'k6';
import exec from 'k6/execution';
const URL = __ENV.SOCKETS.replace('http', 'ws') + '/phoenix/websocket?vsn=2.0.0';
export const options = { scenarios: { rooms: { executor: 'shared-iterations', vus: 2, iterations: 6, tags: { app: 'chat' } } }, thresholds: { 'ws_sessions{app:chat}': ['count==6'], ws_session_duration: ['p(95)<5000'] } };
export default function () {
  const topic = `room:${exec.scenario.iterationInTest}`;
  const log = [];
  const res = ws.connect(URL, null, function (socket) {
    let ref = 0, beats = 0;
    const push = (event, payload, on = topic) => socket.send(JSON.stringify(['1', String(++ref), on, event, payload]));
    socket.on('open', function open() {
      push('phx_join', { token: 'x' });
      push('phx_join', {}, 'lobby');
      socket.setInterval(function () { if (beats < 2) push('heartbeat', {}, 'phoenix'); }, 40);
      socket.setTimeout(function () { log.push('left'); push('phx_leave', {}); }, 300);
    });
    socket.on('message', function (text) {
      const [, , on, event, payload] = JSON.parse(text);
      if (on === 'phoenix') { beats++; return; }
      log.push(event === 'phx_reply' ? `${on.split(':')[0]} ${payload.status}` : event);
      if (event === 'phx_reply' && payload.response.members) { push('shout', { body: 'hi' }); socket.sendBinary(new Uint8Array([0, 1, 2, 255]).buffer); }
      if (event === 'phx_close') { check(beats, { 'heart beats': (n) => n >= 2 }); socket.close(); }
    });
    socket.on('binaryMessage', (bytes) => log.push(`${bytes.byteLength} bytes`));
    socket.on('error', (e) => log.push(e.error()));
  });
  check(res, { 'status is 101': (r) => r.status === 101 });
  check(log.join(), { conversation: (text) => text === 'room ok,lobby error,shout,room ok,4 bytes,left,room ok,phx_close' });
}
