// What goes wrong before a socket is open: refused ports, statuses, redirects, wrong answers, TLS without TLS, unknown names.
import { WebSocket } from 'k6/websockets';
import ws from 'k6/ws';
import { check } from 'k6';
const BASE = __ENV.SOCKETS.replace('http', 'ws');
export const options = { iterations: 2, thresholds: { checks: ['rate==1'] } };
function opened(url, protocols) {
  return new Promise((resolve) => {
    const seen = [];
    const socket = new WebSocket(url, protocols);
    socket.onopen = () => { seen.push('open'); socket.close(); };
    socket.onerror = (event) => seen.push(`error ${event.error}`);
    socket.onclose = (event) => resolve([...seen, `close ${event.code}`].join(', '));
  });
}
const classic = (url, params) => { const res = ws.connect(url, params || {}, (s) => s.on('open', () => s.close())); return `${res.status} ${res.error ? 'error' : ''}`.trim(); };
export default async function () {
  check(await opened('ws://127.0.0.1:1/'), { 'refused port': (t) => t.includes('refused') && t.endsWith('close undefined') });
  check(await opened(`${BASE}/forbidden`), { 403: (t) => t === 'error websocket: bad handshake, close undefined' });
  check(await opened(`${BASE}/broken`), { 500: (t) => t === 'error websocket: bad handshake, close undefined' });
  check(await opened(`${BASE}/moved`), { 'redirects are not followed': (t) => t === 'error websocket: bad handshake, close undefined' });
  check(await opened(`${BASE}/missing`), { 404: (t) => t === 'error websocket: bad handshake, close undefined' });
  check(await opened(`${BASE}/accept`), { 'wrong accept': (t) => t === 'error websocket: bad handshake, close undefined' });
  check(await opened(`${BASE}/reset`), { reset: (t) => t.startsWith('error ') && t.endsWith('close undefined') });
  check(await opened(BASE.replace('ws:', 'wss:') + '/blob'), { 'TLS without TLS': (t) => t.startsWith('error ') && t.includes('tls') && t.endsWith('close undefined') });
  check(await opened('ws://does-not-exist.invalid/'), { 'unknown name': (t) => t.startsWith('error ') && t.endsWith('close undefined') });
  check([classic(`${BASE}/forbidden`), classic(`${BASE}/broken`), classic(`${BASE}/moved`), classic(`${BASE}/missing`)], { 'statuses of k6/ws': (all) => all.join() === '403,500,302,404' });
  check([classic('ws://127.0.0.1:1/'), classic('ws://does-not-exist.invalid/'), classic(`${BASE}/reset`)], { 'no response': (all) => all.every((one) => one === '0 error') });
  check(classic(`${BASE}/blob`), { 'and one that opens': (t) => t === '101' });
}
