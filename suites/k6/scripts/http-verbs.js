// Every verb reaches the server.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export default function () {
  for (const [verb, res] of Object.entries({ GET: http.get(`${BASE}/anything`), POST: http.post(`${BASE}/anything`, 'b'), PUT: http.put(`${BASE}/anything`, 'b'), PATCH: http.patch(`${BASE}/anything`, 'b'), DELETE: http.del(`${BASE}/anything`) })) check(res, { [verb]: (r) => r.json('method') === verb });
  check(http.head(`${BASE}/get`), { HEAD: (r) => r.status === 200 && !r.body });
}
