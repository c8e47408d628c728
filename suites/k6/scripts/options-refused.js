// What may not be reached: names and addresses.
import http from 'k6/http';
import { check } from 'k6';
export const options = { blockHostnames: ['blocked.example', '*.bad.example'], blacklistIPs: ['10.0.0.0/8'] };
export default function () {
  for (const [url, code] of [['http://blocked.example/', 1111], ['http://a.bad.example/', 1111], ['http://10.1.2.3/', 1110]]) {
    check(http.get(url), { status: (r) => r.status === 0, code: (r) => r.error_code === code });
  }
  check(http.get(`${__ENV.BASE}/get`), { others: (r) => r.status === 200 });
}
