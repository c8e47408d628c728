// In the style of scripts made from a HAR: groups of requests as literals, each with its headers and body.
import { group, sleep } from 'k6';
import http from 'k6/http';
export const options = { iterations: 2, maxRedirects: 0 };
const BASE = __ENV.BASE;
export default function main() {
  let response;
  group('page_1 - home', function () {
    response = http.get(`${BASE}/html`, { headers: { accept: 'text/html,application/xhtml+xml', 'upgrade-insecure-requests': '1', 'sec-ch-ua-platform': '"Linux"' } });
    response = http.request('GET', `${BASE}/bytes/512`, null, { headers: { accept: '*/*', referer: `${BASE}/html`, 'if-none-match': 'W/"5"' } });
    sleep(0.05);
  });
  group('page_2 - login', function () {
    response = http.post(`${BASE}/post`, { user: 'a@b.example', password: 'p w&d=1' }, { headers: { 'content-type': 'application/x-www-form-urlencoded', origin: BASE } });
    response = http.request('POST', `${BASE}/anything/api/v1/items?limit=10&q=a%20b`, '{"items":[{"id":1},{"id":2}],"note":"\u00e9"}', { headers: { 'content-type': 'application/json;charset=UTF-8', authorization: 'Bearer abc' }, cookies: { session: '1' } });
    response = http.request('PUT', `${BASE}/put`, 'plain', { headers: { 'content-type': 'text/plain' } });
    response = http.request('DELETE', `${BASE}/delete`, null, { headers: { accept: '*/*' } });
    response = http.request('OPTIONS', `${BASE}/anything`, null, { headers: { 'access-control-request-method': 'POST' } });
    response = http.request('GET', `${BASE}/redirect/1`, null, { headers: {} });
  });
}
