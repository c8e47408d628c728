// Close codes and reasons of the server, a connection that ends without any, pings of either end, and the metrics of pings.
import { WebSocket } from 'k6/websockets';
import ws from 'k6/ws';
import { check } from 'k6';
const BASE = __ENV.SOCKETS.replace('http', 'ws');
export const options = { vus: 2, iterations: 2, thresholds: { ws_ping: ['max<5000'], 'ws_sessions{kind:close}': ['count==26'] } };
const params = { tags: { kind: 'close' } };
const ended = (path) => new Promise((resolve) => {
  const seen = [];
  const socket = new WebSocket(`${BASE}${path}`, null, params);
  socket.onmessage = ({ data }) => seen.push(data);
  socket.onerror = ({ error }) => seen.push(error);
  socket.onclose = ({ code, reason }) => resolve([...seen, code, reason].join('|'));
});
function classic(path) {
  const seen = [];
  ws.connect(`${BASE}${path}`, params, (socket) => {
    for (const event of ['message', 'close']) socket.on(event, (value) => seen.push(value));
    socket.on('error', (e) => seen.push(e.error()));
  });
  return seen.join('|');
}
export default async function () {
  check(await ended('/close?code=1000&reason=bye'), { 1000: (t) => t === 'before|1000|bye' });
  for (const [code, name] of [[1001, ' (going away)'], [1008, ' (policy violation)'], [1011, ' (internal server error)'], [3000, ''], [4999, '']]) {
    const because = `websocket: close ${code}${name}: because`;
    check(await ended(`/close?code=${code}&reason=because`), { [`${code} on the event loop`]: (t) => t === `before|${because}|${code}|because` });
    check(classic(`/close?code=${code}&reason=because`), { [`${code} in k6/ws`]: (t) => t.startsWith('before|') && t.endsWith(`|${code}`) });
  }
  check(classic('/close?code=1005'), { 'without a code': (t) => t === 'before|1005' || t === 'before|websocket: close 1005 (no status)|1005' });
  check(await ended('/close?code=1006'), { 'without a close frame': (t) => t.startsWith('before|') });
  const socket = new WebSocket(`${BASE}/ping`);
  let pings = 0;
  socket.onping = () => { pings++; };
  const got = [];
  socket.onmessage = ({ data }) => got.push(data);
  await new Promise((resolve) => { socket.onclose = resolve; });
  check(got, { 'pings are answered with what they had': (all) => all.join() === 'pong 0,pong 1,pong 2', 'and are events': () => pings === 3 });
  const own = new WebSocket(`${BASE}/blob`);
  await new Promise((resolve) => { let pongs = 0; own.onopen = () => own.ping(); own.onpong = () => { if (++pongs === 2) { own.close(); } else own.ping(); }; own.onclose = resolve; });
  check(own, { 'own pings': (s) => s.readyState === 3 });
}
