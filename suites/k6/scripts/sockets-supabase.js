// Supabase Realtime through the older name of the module: joins with a token, changes, presence, broadcast, heartbeats, leaving.
import { WebSocket } from 'k6/experimental/websockets';
import { check } from 'k6';
import { Counter, Rate } from 'k6/metrics';
const URL = __ENV.SOCKETS.replace('http', 'ws') + '/realtime/v1/websocket?apikey=anon&vsn=1.0.0';
const changes = new Counter('realtime_changes'), joined = new Rate('realtime_joined');
export const options = { vus: 2, iterations: 2, thresholds: { realtime_changes: ['count==12'], realtime_joined: ['rate==0.5'] } };
export default function () {
  const socket = new WebSocket(URL, null, { headers: { Authorization: 'Bearer x' } });
  let ref = 0, heartbeat;
  const pending = new Map(), left = new Set(), log = [];
  const push = (topic, event, payload, then) => { ref += 1; if (then) pending.set(String(ref), then); socket.send(JSON.stringify({ topic, event, payload, ref: String(ref) })); };
  const config = { postgres_changes: [{ event: '*', schema: 'public', table: 'orders' }], broadcast: { self: true }, presence: { key: '' } };
  socket.onopen = () => {
    heartbeat = setTimeout(() => push('phoenix', 'heartbeat', {}, () => log.push('beat')), 40);
    for (const room of ['one', 'two']) {
      push(`realtime:${room}`, 'phx_join', { config, access_token: 'jwt' }, ({ status }) => { joined.add(status === 'ok'); push(`realtime:${room}`, 'broadcast', { type: 'broadcast', event: 'cursor', payload: { x: 1 } }); });
      push(`realtime:${room}-bad`, 'phx_join', { config, access_token: 'old' }, ({ status, response }) => { joined.add(status === 'ok'); check(response, { 'a bad token is refused': (r) => r.reason === 'Invalid token' }); });
    }
  };
  socket.onmessage = ({ data }) => {
    const { topic, event, payload, ref: answered } = JSON.parse(data);
    if (event === 'phx_reply') { pending.get(answered)?.(payload); pending.delete(answered); }
    if (event === 'postgres_changes') changes.add(1, { table: 'orders' });
    if (event === 'broadcast') setTimeout(() => push(topic, 'phx_leave', {}), 100);
    if (event === 'phx_close') { left.add(topic); if (left.size === 2) { clearTimeout(heartbeat); setTimeout(() => socket.close(), 20); } }
  };
  socket.onclose = () => check(log, { 'heart beats were answered': (l) => l.length >= 1, 'both rooms were left': () => left.size === 2, 'nothing is pending': () => pending.size === 0 });
}
