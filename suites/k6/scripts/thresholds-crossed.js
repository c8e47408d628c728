// A threshold that is crossed.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { iterations: 4, thresholds: { checks: ['rate>0.9'], http_req_failed: ['rate<0.1'] } };
export default function () { check(http.get(`${BASE}/status/500`), { ok: (r) => r.status === 200 }); }
