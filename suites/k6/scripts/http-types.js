// Text, binary, nothing.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export default function () {
  check(http.get(`${BASE}/get`, { responseType: 'binary' }), { binary: (r) => r.body.byteLength > 0 });
  check(http.get(`${BASE}/get`, { responseType: 'none' }), { none: (r) => r.body === null });
}
