// A server that is not there.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export default function () {
  const r = http.get('http://127.0.0.1:1/');
  check(r, { status: (r) => r.status === 0, code: (r) => r.error_code === 1212, body: (r) => r.body === null });
  let thrown = false; try { http.get('http://127.0.0.1:1/', { throw: true }); } catch (e) { thrown = true; }
  check(thrown, { thrown: (t) => t });
}
