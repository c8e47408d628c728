// Fixed addresses: by name, by name and port, by pattern.
import http from 'k6/http';
import { check } from 'k6';
const AT = __ENV.BASE.replace('http://', '');
const PORT = AT.split(':')[1];
export const options = { hosts: { 'one.example': '127.0.0.1', 'two.example:80': AT, '*.three.example': AT } };
export default function () {
  for (const url of [`http://one.example:${PORT}/get`, 'http://two.example/get', 'http://a.three.example/get']) {
    check(http.get(url), { ok: (r) => r.status === 200 && r.url === url, host: (r) => r.json('headers.Host') !== undefined });
  }
}
