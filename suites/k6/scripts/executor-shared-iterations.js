// Iterations that users share.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { scenarios: { s: { executor: 'shared-iterations', vus: 4, iterations: 25 } } };
export default function () { check(http.get(`${BASE}/get`), { ok: (r) => r.status === 200 }); }
