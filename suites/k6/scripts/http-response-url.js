// The URL of a response.
import http from 'k6/http';
import { check } from 'k6';
const BASE = __ENV.BASE;
export const options = { iterations: 1 };
export default function () {
  check(http.get(BASE), { 'as given': (r) => r.url === BASE && r.request.url === BASE });
  check(http.get(`${BASE}/get?a=1#part`), { 'with its fragment': (r) => r.url === `${BASE}/get?a=1#part` });
  check(http.get(`${BASE}/redirect/1`), { 'of the last hop': (r) => r.url === `${BASE}/get` });
}
