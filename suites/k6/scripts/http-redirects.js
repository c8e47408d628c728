// Redirects are followed, up to a limit.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export default function () {
  check(http.get(`${BASE}/redirect/3`), { followed: (r) => r.status === 200 && r.url.endsWith('/get') });
  check(http.get(`${BASE}/redirect/3`, { redirects: 1 }), { stopped: (r) => r.status === 302 });
  check(http.get(`${BASE}/redirect/1`, { redirects: 0 }), { 'not followed': (r) => r.status === 302 });
}
