// STOMP 1.2 with a broker on the event loop: connect, heart-beats, subscriptions with receipts, errors, disconnect.
import { WebSocket } from 'k6/websockets';
import { check } from 'k6';
import { Trend } from 'k6/metrics';
const URL = __ENV.SOCKETS.replace('http', 'ws') + '/stomp';
const delivery = new Trend('stomp_delivery', true);
export const options = { scenarios: { clients: { executor: 'per-vu-iterations', vus: 3, iterations: 2 } }, thresholds: { stomp_delivery: ['p(95)<5000'], ws_msgs_sent: ['count>0'] } };
class Stomp {
  constructor(url) {
    this.waiting = []; this.onmessage = () => {};
    this.socket = new WebSocket(url, ['v12.stomp', 'v11.stomp']);
    this.opened = new Promise((resolve, reject) => { this.socket.addEventListener('open', resolve); this.socket.addEventListener('error', (e) => reject(e.error)); });
    this.closed = new Promise((resolve) => this.socket.addEventListener('close', resolve));
    this.socket.addEventListener('message', ({ data }) => this.take(data));
  }
  take(text) {
    if (text === '\n') { this.beats = (this.beats || 0) + 1; return; }
    const [head, body] = text.replace(/\0$/, '').split('\n\n');
    const [command, ...lines] = head.split('\n');
    const headers = Object.fromEntries(lines.map((line) => { const at = line.indexOf(':'); return [line.slice(0, at), line.slice(at + 1)]; }));
    if (command === 'MESSAGE') this.onmessage(headers, body);
    else { const next = this.waiting.findIndex((w) => w.command === command); if (next >= 0) this.waiting.splice(next, 1)[0].resolve({ command, headers, body }); }
  }
  send(command, headers = {}, body = '') { this.socket.send(`${command}\n${Object.entries(headers).map(([k, v]) => `${k}:${v}\n`).join('')}\n${body}\0`); }
  expect(command) { return new Promise((resolve) => this.waiting.push({ command, resolve })); }
}
export default async function () {
  const client = new Stomp(URL);
  await client.opened;
  const connected = client.expect('CONNECTED');
  client.send('CONNECT', { 'accept-version': '1.2', host: 'broker', 'heart-beat': '50,50' });
  check(await connected, { 'version is 1.2': (f) => f.headers.version === '1.2' });
  let beats = 0;
  const beat = setInterval(() => { if (++beats <= 2) client.socket.send('\n'); }, 20);
  const got = [];
  const all = new Promise((resolve) => { client.onmessage = (headers, body) => { delivery.add(Date.now() - Number(body.split(' ')[1])); got.push(headers['message-id']); if (got.length === 5) resolve(); }; });
  const receipt = client.expect('RECEIPT');
  client.send('SUBSCRIBE', { id: 'sub-0', destination: `/topic/${__VU}`, receipt: 'r1' });
  check(await receipt, { 'the subscription is confirmed': (f) => f.headers['receipt-id'] === 'r1' });
  for (let n = 0; n < 5; n++) client.send('SEND', { destination: `/topic/${__VU}` }, `${n} ${Date.now()}`);
  await all;
  check(got, { 'messages are in order': (ids) => ids.join() === '1,2,3,4,5' });
  const error = client.expect('ERROR');
  client.send('SEND', { destination: '/nobody' }, 'x');
  check(await error, { 'an error is reported': (f) => f.headers.message === 'nobody is subscribed' });
  await new Promise((resolve) => setTimeout(resolve, 150));
  clearInterval(beat);
  check(client.beats, { 'heart beats': (n) => n === 2 });
  client.send('DISCONNECT', { receipt: 'bye' });
  check(await client.closed, { 'the server closes': (e) => e.code === 1000 && e.reason === 'bye' });
}
