// STOMP over `k6/ws`: frames with headers and a NUL, which the server sends back.
import ws from 'k6/ws';
import { check, group } from 'k6';
const BASE = __ENV.BASE.replace('http', 'ws');
const frame = (command, headers = {}, body = '') => [command, ...Object.entries(headers).map(([k, v]) => `${k}:${v}`), '', `${body}\0`].join('\n');
const parsed = (text) => {
  const [head, body] = text.replace(/\0$/, '').split('\n\n');
  const [command, ...lines] = head.split('\n');
  return { command, headers: Object.fromEntries(lines.map((line) => line.split(':'))), body };
};
export default function () {
  group('stomp', () => {
    const bodies = [];
    const res = ws.connect(`${BASE}/ws/echo`, { headers: { 'Sec-WebSocket-Protocol': 'v12.stomp, v11.stomp' } }, (socket) => {
      socket.on('open', () => socket.send(frame('CONNECTED', { version: '1.2' })));
      socket.on('message', (text) => {
        const { command, headers, body } = parsed(text);
        if (command === 'CONNECTED' && headers.version === '1.2') {
          for (let n = 0; n < 5; n++) socket.send(frame('MESSAGE', { destination: '/topic/a', 'message-id': n }, `body ${n}`));
        } else if (command === 'MESSAGE') {
          bodies.push(body);
          if (bodies.length === 5) socket.send(frame('RECEIPT', { 'receipt-id': 'bye' }));
        } else if (command === 'RECEIPT') socket.close(1000);
      });
    });
    check(res, { 'the subprotocol is chosen': (r) => r.headers['Sec-Websocket-Protocol'] === 'v12.stomp' });
    check(bodies, { 'all bodies in order': (all) => all.join() === 'body 0,body 1,body 2,body 3,body 4' });
  });
}
