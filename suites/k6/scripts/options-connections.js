// New connections for each iteration: the first request of each connects.
import http from 'k6/http';
import { check } from 'k6';
export const options = { iterations: 3, noVUConnectionReuse: true };
export default function () {
  check(http.get(`${__ENV.BASE}/get`), { connects: (r) => r.timings.connecting > 0 });
  check(http.get(`${__ENV.BASE}/get`), { reuses: (r) => r.timings.connecting === 0 });
}
