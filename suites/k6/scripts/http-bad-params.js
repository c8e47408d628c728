// Params that cannot be used.
import http from 'k6/http';
import { check } from 'k6';
const BASE = __ENV.BASE;
export const options = { iterations: 2 };
export default function () {
  for (const params of [{ timeout: 'soon' }, { responseType: 'xml' }, { responseCallback: 5 }, { tags: { a: {} } }]) {
    const r = http.get(BASE, params);
    check(r, { 'no response': () => r.status === 0 && r.error !== '' && r.timings.duration === 0 });
  }
  check(http.get(BASE, { jar: 'none' }), { 'a jar that is none is passed over': (r) => r.status === 200 });
}
