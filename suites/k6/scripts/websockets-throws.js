// What a listener throws fails the iteration, which counts all the same.
import { WebSocket } from 'k6/websockets';
import { check } from 'k6';
const URL = __ENV.BASE.replace('http', 'ws') + '/ws/echo';
export const options = { iterations: 2 };
export default function () {
  const socket = new WebSocket(URL);
  socket.onopen = () => { check(1, { opened: () => true }); throw new Error('no'); };
  socket.onclose = () => check(socket, { closed: (s) => s.readyState === 3 });
}
