// Binary messages of all kinds: buffers, views of a part of one, blobs and their slices, a large message, text beside them.
import { WebSocket, Blob } from 'k6/websockets';
import { check } from 'k6';
import crypto from 'k6/crypto';
import encoding from 'k6/encoding';
const URL = __ENV.SOCKETS.replace('http', 'ws') + '/blob';
export const options = { vus: 2, iterations: 2 };
const answer = (socket, data) => new Promise((resolve) => { socket.onmessage = (event) => resolve(event.data); socket.send(data); });
export default async function () {
  const socket = new WebSocket(URL, [], { compression: 'deflate' });
  await new Promise((resolve) => { socket.onopen = resolve; });
  check(socket, { 'blobs by default': (s) => s.binaryType === 'blob', 'nothing is buffered': (s) => s.bufferedAmount === 0 });
  const bytes = new Uint8Array(16).map((_, n) => n * 16);
  const blob = await answer(socket, bytes.buffer);
  check(blob, { 'it is a blob': (b) => b.size === 16 });
  check(encoding.b64encode(await blob.slice(4, 8).arrayBuffer()), { 'a slice': (text) => text === 'QFBgcA==' });
  socket.binaryType = 'arraybuffer';
  check(await answer(socket, new Uint16Array(bytes.buffer, 2, 3)), { 'a view of a part': (b) => b.byteLength === 6 && new Uint8Array(b)[0] === 32 });
  check(await answer(socket, await new Blob(['héllo', bytes, '!']).arrayBuffer()), { 'a blob of parts': (b) => b.byteLength === 6 + 16 + 1 });
  const large = new Uint8Array(300000).map((_, n) => (n * 7919) % 251);
  const sum = crypto.sha256(large.buffer, 'hex');
  check(await answer(socket, large), { 'a large message': (b) => b.byteLength === 300000 && crypto.sha256(b, 'hex') === sum });
  check(await answer(socket, 'text ✓'), { 'text stays text': (t) => t === 'text ✓' });
  check(await answer(socket, ''), { 'an empty message': (t) => t === '' });
  check(await answer(socket, new ArrayBuffer(0)), { 'an empty buffer': (b) => b.byteLength === 0 });
  const closed = new Promise((resolve) => { socket.onclose = resolve; });
  socket.close();
  await closed;
  check(socket, { closed: (s) => s.readyState === 3 });
}
