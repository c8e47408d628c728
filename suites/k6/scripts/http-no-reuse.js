// Requests that share no connection say so, and a server that is not reached has no address.
import http from 'k6/http';
import { check } from 'k6';
const BASE = __ENV.BASE;
export const options = { noConnectionReuse: true };
export default function () {
  const headers = (res) => res.json('headers');
  check(http.get(`${BASE}/headers`), { 'closes': (r) => headers(r).Connection === 'close', 'address': (r) => r.remote_ip === '127.0.0.1' });
  check(http.get(`${BASE}/redirect/1`), { 'after a redirect': (r) => r.status === 200 });
  const own = http.get(`${BASE}/headers`, { headers: { Connection: 'keep-alive' } });
  check(own, { 'whatever it says': (r) => headers(r).Connection.includes('close') });
  check(http.get('http://127.0.0.1:9/'), { 'no address': (r) => r.remote_ip === '' && r.error_code === 1212 });
}
