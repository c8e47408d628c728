// Several WebSockets of one VU on the event loop, awaited with promises.
import { WebSocket } from 'k6/websockets';
import { check } from 'k6';
const BASE = __ENV.BASE.replace('http', 'ws');
export const options = { vus: 2, iterations: 4, thresholds: { ws_sessions: ['count==40'], ws_connecting: ['p(95)<5000'], ws_session_duration: ['max<10000'], ws_msgs_received: ['count==40'] } };
const open = (path) => new Promise((resolve, reject) => {
  const socket = new WebSocket(`${BASE}${path}`);
  socket.onopen = () => resolve(socket);
  socket.onerror = (event) => reject(event.error);
});
const answer = (socket, text) => new Promise((resolve) => {
  socket.onmessage = (event) => resolve(event.data);
  socket.send(text);
});
const closed = (socket) => new Promise((resolve) => {
  socket.addEventListener('close', (event) => resolve(event.code));
  socket.close();
});
export default async function () {
  const sockets = await Promise.all(Array.from({ length: 10 }, () => open('/ws/echo')));
  check(sockets, { 'all are open': (all) => all.every((socket) => socket.readyState === 1) });
  const answers = await Promise.all(sockets.map((socket, n) => answer(socket, `from ${n}`)));
  check(answers, { 'each has its answer': (all) => all.every((text, n) => text === `from ${n}`) });
  const codes = await Promise.all(sockets.map(closed));
  check(codes, { 'all are closed': (all) => all.every((code) => code === 1000) });
}
