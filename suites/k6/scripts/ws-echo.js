// A WebSocket of `k6/ws`: messages at intervals, a ping, a close after a while.
import ws from 'k6/ws';
import { check } from 'k6';
const BASE = __ENV.BASE.replace('http', 'ws');
export const options = { vus: 2, iterations: 4 };
export default function () {
  const seen = [];
  const res = ws.connect(`${BASE}/ws/echo`, { tags: { kind: 'echo' }, headers: { 'X-Name': 'a' } }, (socket) => {
    let count = 0;
    socket.on('open', () => {
      socket.send('first');
      socket.setInterval(() => { if (count < 3) socket.send(`message ${count++}`); }, 20);
      socket.ping();
    });
    socket.on('pong', () => seen.push('pong'));
    socket.on('message', (text) => {
      seen.push(text);
      if (text === 'message 2') socket.sendBinary(new Uint8Array([1, 2, 3]).buffer);
    });
    socket.on('binaryMessage', (bytes) => {
      seen.push(new Uint8Array(bytes).join());
      socket.setTimeout(() => socket.close(1000), 10);
    });
    socket.on('close', (code) => seen.push(code));
  });
  check(res, { 'status is 101': (r) => r && r.status === 101, 'it has a url': (r) => r.url.endsWith('/ws/echo'), 'no error': (r) => r.error === '' });
  check(seen.filter((one) => one !== 'pong'), { messages: (all) => all.join(' ') === 'first message 0 message 1 message 2 1,2,3 1000' });
  check(seen, { 'one pong': (all) => all.filter((one) => one === 'pong').length === 1 });
}
