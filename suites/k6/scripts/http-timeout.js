// A time-out.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export default function () { check(http.get(`${BASE}/delay/3`, { timeout: '300ms' }), { late: (r) => r.error_code === 1050 && r.status === 0 }); }
