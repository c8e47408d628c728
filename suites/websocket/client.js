// The client of the cases: what it receives it sends back, until the server closes.
import { WebSocket } from 'k6/websockets';

export const options = { scenarios: { cases: { executor: 'per-vu-iterations', vus: 1, iterations: 1, maxDuration: '1h' } } };

const talk = (path, onMessage) => new Promise((resolve) => {
  const socket = new WebSocket(`${__ENV.FUZZER}${path}`, null, { compression: 'deflate' });
  socket.binaryType = 'arraybuffer';
  socket.onmessage = ({ data }) => onMessage(socket, data);
  socket.onclose = resolve;
});

export default async function () {
  let count = 0;
  await talk('/getCaseCount', (socket, data) => { count = Number(data); });
  for (let nth = 1; nth <= count; nth++) await talk(`/runCase?case=${nth}&agent=squall`, (socket, data) => socket.send(data));
  await talk('/updateReports?agent=squall', () => {});
}
