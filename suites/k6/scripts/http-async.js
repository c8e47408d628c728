// Promises of responses.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export default async function () {
  const both = await Promise.all([http.asyncRequest('GET', `${BASE}/get`), http.asyncRequest('POST', `${BASE}/post`, 'x')]);
  check(both, { both: (b) => b[0].status === 200 && b[1].status === 200 });
}
