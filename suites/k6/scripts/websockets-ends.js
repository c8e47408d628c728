// How WebSockets of the event loop end, and what they refuse.
import { WebSocket, Blob } from 'k6/websockets';
import { check } from 'k6';
const BASE = __ENV.BASE.replace('http', 'ws');
function ended(path, act, protocols) {
  return new Promise((resolve) => {
    const seen = [];
    const socket = new WebSocket(`${BASE}${path}`, protocols);
    socket.addEventListener('open', () => { seen.push('open'); act(socket, seen); });
    socket.addEventListener('error', (event) => seen.push(`error ${event.error}`));
    socket.addEventListener('close', (event) => { seen.push(`close ${event.code} ${event.reason}`, socket.readyState); resolve(seen.join(', ')); });
  });
}
const thrown = (act) => { try { act(); return 'nothing'; } catch (error) { return error.message; } };
const is = (expected) => (actual) => actual === expected;
export default async function () {
  check(await ended('/ws/echo', (s) => s.close()), { 'closed by us': is('open, close 1000 , 3') });
  check(await ended('/ws/echo', (s) => s.close(3333, 'why')), { 'with a reason': is('open, error websocket: close 3333: why, close 3333 why, 3') });
  check(await ended('/ws/echo?close-after=1', (s) => s.send('x')), { 'closed by the server': is('open, close 1000 , 3') });
  check(await ended('/ws/echo', (s) => s.close(), ['one', 'two']), { 'with a subprotocol': is('open, close 1000 , 3') });
  check(await ended('/status/404', () => {}), { refused: is('error websocket: bad handshake, close undefined , 3') });
  check(await ended('/ws/echo', (s, seen) => { s.binaryType = 'arraybuffer'; s.onmessage = (e) => { seen.push(e.data.byteLength); s.close(); }; s.send(new Uint8Array([1, 2]).buffer); }), { buffers: is('open, 2, close 1000 , 3') });
  check(await ended('/ws/echo', (s, seen) => { s.onmessage = (e) => { seen.push(e.data.size); s.close(); }; s.send(new Uint8Array([1, 2, 3])); }), { blobs: is('open, 3, close 1000 , 3') });
  check(await ended('/ws/echo', (s, seen) => { s.onpong = () => { seen.push('pong'); s.close(); }; s.ping(); }), { pong: is('open, pong, close 1000 , 3') });
  check(await ended('/ws/echo', (s, seen) => { seen.push(thrown(() => s.close(1001))); s.close(); seen.push(thrown(() => s.send('x'))); }), { 'what is refused': (text) => text.includes('1001 is neither, InvalidStateError') });
  check(thrown(() => new WebSocket('http://h/')), { scheme: is('WebSocket requires url with scheme ws or wss, but got "http"') });
  check(thrown(() => new WebSocket('ws://h/', null, { foo: 1 })), { option: is("unknown WebSocket's option foo") });
  check(await new Blob(['he', 'llo']).text(), { blob: is('hello') });
}
