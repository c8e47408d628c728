// The request of a response is the one that was asked for.
import http from 'k6/http';
import { check } from 'k6';
const BASE = __ENV.BASE;
export default function () {
  const r = http.post(`${BASE}/redirect-to?url=/headers&status_code=303`, { a: 1 }, { headers: { 'x-own': '2' } });
  check(r, {
    'last url': (r) => r.url === `${BASE}/headers`,
    'first url': (r) => r.request.url.endsWith('status_code=303'),
    method: (r) => r.request.method === 'POST',
    body: (r) => r.request.body === 'a=1',
    headers: (r) => r.request.headers['X-Own'][0] === '2',
    referer: (r) => r.json('headers.Referer') === r.request.url,
  });
  check(http.request('GET', `${BASE}/anything`, 'query'), { 'a body': (r) => r.json('data') === 'query' });
}
