// How WebSockets of `k6/ws` end: by the server, refused, with exceptions.
import ws from 'k6/ws';
import { check } from 'k6';
const BASE = __ENV.BASE.replace('http', 'ws');
function ended(path, setUp) {
  const seen = [];
  let res;
  try {
    res = ws.connect(`${BASE}${path}`, (socket) => {
      for (const event of ['open', 'close', 'error']) socket.on(event, (x) => seen.push(event + (x === undefined ? '' : ` ${x.error ? x.error() : x}`)));
      if (setUp) setUp(socket);
    });
  } catch (error) { seen.push(`thrown ${error.message}`); }
  return [seen.join(', '), res && res.status, res && res.error];
}
const is = (expected) => (actual) => JSON.stringify(actual) === JSON.stringify(expected);
export default function () {
  const one = (socket) => socket.on('open', () => socket.send('x'));
  check(ended('/ws/echo?close-after=1', one), { 'by the server': is(['open, close 1000', 101, '']) });
  check(ended("/ws/echo?close-after=1&code=3001", one), { "with a code": (all) => all[0].startsWith("open, error websocket: close 3001") && all[0].endsWith("close 3001") });
  check(ended('/status/403'), { refused: is(['', 403, '']) });
  check(ended('/ws/echo', () => { throw new Error('no'); }), { 'set-up throws': is(['close 1001, thrown no', undefined, undefined]) });
  check(ended('/ws/echo', (s) => s.on('open', () => { throw new Error('no'); })), { 'open throws': is(['open, close 1001, thrown no', undefined, undefined]) });
  check(ended('/ws/echo', (s) => s.setTimeout(() => { throw new Error('no'); }, 5)), { 'timer throws': is(['open, close 1001, thrown no', undefined, undefined]) });
  check(ended('/ws/echo', (s) => s.on('open', () => { s.close(); s.send('x'); })), { 'sent too late': is(['open, close 1001, error websocket: close sent', 101, '']) });
  check(ws.connect('http://nowhere/', () => {}), { 'no WebSocket': (r) => r.status === 0 && r.error === 'malformed ws or wss URL' });
  check(ws.connect('ws://127.0.0.1:1/', () => {}), { 'no server': (r) => r.status === 0 && r.error.includes('refused') });
}
