// Many requests at once.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export default function () {
  const list = http.batch([`${BASE}/get`, ['POST', `${BASE}/post`, 'x'], { method: 'PUT', url: `${BASE}/put`, body: 'y' }]);
  check(list, { three: (l) => l.length === 3 && l.every((r) => r.status === 200) });
  const named = http.batch({ a: `${BASE}/get`, b: `${BASE}/status/404` });
  check(named, { named: (n) => n.a.status === 200 && n.b.status === 404 });
}
