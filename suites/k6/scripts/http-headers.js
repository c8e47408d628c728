// Headers both ways.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export default function () {
  const r = http.get(`${BASE}/headers`, { headers: { 'X-Mine': 'yes' } });
  check(r, { sent: (r) => r.body.includes('yes'), type: (r) => r.headers['Content-Type'].includes('json'), same: (r) => r.request.headers['X-Mine'][0] === 'yes' });
}
