// Several sockets of each user, in rooms where everyone hears everyone; cookies of the user's jar, tags, groups, and timers of the loop.
import http from 'k6/http';
import { WebSocket } from 'k6/websockets';
import { check, group } from 'k6';
import exec from 'k6/execution';
const BASE = __ENV.SOCKETS, WS = BASE.replace('http', 'ws');
export const options = {
  scenarios: { rooms: { executor: 'per-vu-iterations', vus: 2, iterations: 1, exec: 'one' },
               fixed: { executor: 'per-vu-iterations', vus: 3, iterations: 2, exec: 'rooms' } },
  thresholds: { 'ws_msgs_received{room:yes}': ['count==180'], 'ws_msgs_sent{room:yes}': ['count==60'], 'ws_sessions{room:yes}': ['count==30'], 'ws_session_duration{room:yes}': ['max<20000'] },
};
export function one() {
  http.get(`${BASE}/login`);
  group('with cookies', () => {
    const socket = new WebSocket(`${WS}/cookies`, null, { headers: { 'X-Agent': 'k6' } });
    socket.onmessage = ({ data }) => { check(JSON.parse(data), { 'the jar is sent': (d) => d.cookie === 'session=abc123', 'and the header': (d) => d.agent === 'k6' }); socket.close(); };
  });
  const jar = new http.CookieJar();
  jar.set(BASE, 'own', 'jar');
  const other = new WebSocket(`${WS}/cookies`, null, { jar });
  other.addEventListener('message', ({ data }) => { check(JSON.parse(data), { 'another jar': (d) => d.cookie === 'own=jar' }); other.close(); });
}
export function rooms() {
  const name = `r${exec.vu.idInTest}-${exec.vu.iterationInScenario}`, size = 5;
  const heard = [];
  for (let n = 0; n < size; n++) {
    const socket = new WebSocket(`${WS}/room?name=${name}&size=${size}`, null, { tags: { room: 'yes', member: String(n) } });
    socket.addEventListener('message', ({ data }) => {
      const message = JSON.parse(data);
      if (message.type === 'full') socket.send(`from ${n}`);
      else { heard.push(message.text); if (heard.filter((text) => text === message.text).length === size && heard.length === size * size) setTimeout(done, 30); }
    });
    socket.addEventListener('close', ({ code }) => { if (n === 0) check({ code, heard }, { 'closed in order': (s) => s.code === 1000, 'everyone heard everyone': (s) => s.heard.length === 25 && new Set(s.heard).size === 5 }); });
    sockets.push(socket);
  }
}
let sockets = [];
const done = () => { sockets.forEach((socket) => socket.close()); sockets = []; };
