// Cookies are kept within an iteration.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { iterations: 2 };
export default function () {
  check(http.get(`${BASE}/cookies`), { 'none at first': (r) => Object.keys(r.json('cookies')).length === 0 });
  http.get(`${BASE}/cookies/set?a=1`, { redirects: 0 });
  check(http.get(`${BASE}/cookies`), { kept: (r) => r.json('cookies.a') === '1' });
  check(http.get(`${BASE}/cookies`, { cookies: { b: '2' } }), { added: (r) => r.json('cookies.b') === '2' });
}
