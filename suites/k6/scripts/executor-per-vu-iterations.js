// As many iterations for each user.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { scenarios: { s: { executor: 'per-vu-iterations', vus: 3, iterations: 7 } } };
export default function () { check(http.get(`${BASE}/get`), { ok: (r) => r.status === 200 }); }
