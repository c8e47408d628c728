// Basic and digest.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
const HOST = BASE.replace('http://', '');
export default function () {
  check(http.get(`http://user:pass@${HOST}/basic-auth/user/pass`), { basic: (r) => r.status === 200 });
  check(http.get(`http://user:pass@${HOST}/digest-auth/auth/user/pass`, { auth: 'digest' }), { digest: (r) => r.status === 200 });
}
