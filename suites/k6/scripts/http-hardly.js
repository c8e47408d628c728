// Requests that cannot be made, and answers that are no JSON, do not end the iteration.
import http from 'k6/http';
import { check } from 'k6';
const BASE = __ENV.BASE;
export const options = { thresholds: { 'http_reqs{name:undefined/login}': ['count==1'] } };
export default function () {
  check(http.get('undefined/login'), { 'no scheme': (r) => r.status === 0 && r.error_code === 1000 });
  check(http.post(`${BASE}/post`, [1, 2]), { 'no body': (r) => r.status === 0 });
  check(http.get(`${BASE}/html`), { 'no JSON': (r) => r.json('a.b') === undefined });
  check(http.get(`${BASE}/get`, { headers: { 'Transfer-Encoding': 'chunked' } }), { 'no chunks': (r) => r.status === 200 });
}
