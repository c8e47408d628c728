// Subscriptions with the subprotocol graphql-transport-ws, whose messages the server sends back.
import { WebSocket } from 'k6/websockets';
import { check } from 'k6';
import { Counter } from 'k6/metrics';
const URL = __ENV.BASE.replace('http', 'ws') + '/ws/echo';
const next = new Counter('graphql_next');
export const options = { iterations: 2, thresholds: { graphql_next: ['count==6'] } };
export default function () {
  const socket = new WebSocket(URL, ['graphql-transport-ws'], { tags: { name: 'graphql' } });
  const seen = [];
  const send = (message) => socket.send(JSON.stringify(message));
  socket.addEventListener('open', () => {
    check(socket, { subprotocol: (s) => s.protocol === 'graphql-transport-ws' });
    send({ type: 'connection_ack' });
  });
  socket.addEventListener('message', ({ data }) => {
    const { type, id, payload } = JSON.parse(data);
    seen.push(type);
    if (type === 'connection_ack') for (let n = 0; n < 3; n++) send({ type: 'next', id: 'a', payload: { data: { n } } });
    else if (type === 'next') {
      next.add(1);
      if (payload.data.n === 2) send({ type: 'complete', id });
    } else socket.close(1000, 'done');
  });
  socket.addEventListener('close', (event) => check(event, {
    'closed as asked': (e) => e.code === 1000 && e.reason === 'done',
    conversation: () => seen.join() === 'connection_ack,next,next,next,complete',
  }));
}
