// Channels as Phoenix and Supabase have them: a heartbeat at intervals, joins and broadcasts with references.
import { WebSocket } from 'k6/websockets';
import { check, sleep } from 'k6';
import http from 'k6/http';
import exec from 'k6/execution';
const URL = __ENV.BASE.replace('http', 'ws') + '/ws/echo?apikey=key&vsn=1.0.0';
export const options = { scenarios: { members: { executor: 'per-vu-iterations', vus: 3, iterations: 1 } } };
export default function () {
  const socket = new WebSocket(URL, null, { headers: { 'X-Client-Info': 'k6' } });
  const topic = `realtime:room${exec.vu.idInTest}`;
  const seen = { phx_join: 0, broadcast: 0, heartbeat: 0 };
  let ref = 0, heart;
  const push = (event, payload = {}) => socket.send(JSON.stringify({ topic, event, payload, ref: String(++ref) }));
  socket.onopen = () => {
    push('phx_join', { config: { broadcast: { self: true } } });
    heart = setInterval(() => push('heartbeat'), 30);
  };
  socket.onmessage = (event) => {
    const message = JSON.parse(event.data);
    seen[message.event]++;
    if (message.event === 'phx_join') {
      check(http.get(`${__ENV.BASE}/get`), { 'requests work meanwhile': (r) => r.status === 200 });
      for (let n = 0; n < 4; n++) push('broadcast', { n });
    }
    if (message.event === 'heartbeat') {
      clearInterval(heart);
      setTimeout(() => socket.close(), 20);
    }
  };
  socket.onclose = () => check(seen, { 'all came back': (s) => s.phx_join === 1 && s.broadcast === 4 && s.heartbeat === 1 });
  socket.onerror = (event) => check(event, { 'no error': () => false });
}
