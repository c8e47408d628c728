// Forms and files.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export default function () {
  check(http.post(`${BASE}/post`, { b: 'x y', a: '1' }), { form: (r) => r.json('form.a') == '1' && r.json('form.b') == 'x y' });
  check(http.post(`${BASE}/post`, { f: http.file('data', 'f.txt', 'text/plain') }), { multipart: (r) => r.request.headers['Content-Type'][0].startsWith('multipart/form-data') && r.status === 200 });
}
