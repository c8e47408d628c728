// Sub-metrics by tags.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { iterations: 3, thresholds: { 'http_reqs{name:N}': ['count==3'], 'http_reqs{status:404}': ['count==3'], 'http_req_duration{method:POST}': ['p(95)<5000'], 'checks{check:found}': ['rate==0'] } };
export default function () { check(http.get(`${BASE}/status/404`), { found: (r) => r.status === 200 }); http.post(`${BASE}/post`, 'x', { tags: { name: 'N' } }); }
