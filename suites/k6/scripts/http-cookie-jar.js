// The jar of the user, by its name, and cookies from three places.
import http from 'k6/http';
import { check } from 'k6';
const BASE = __ENV.BASE;
export default function () {
  const jar = http.cookieJar();
  jar.set(BASE, 'mine', '1');
  check(http.get(`${BASE}/cookies`, { jar }), { 'its own jar': (r) => r.json('cookies.mine') === '1' });
  http.get(`${BASE}/cookies/set?set=2`, { jar });
  check(http.get(`${BASE}/cookies`), { 'set there': (r) => r.json('cookies.set') === '2' });
  check(http.get(`${BASE}/headers`, { headers: { Cookie: 'raw=0' }, cookies: { own: '3' } }), {
    'three places': (r) => r.json('headers.Cookie') === 'raw=0; own=3; mine=1; set=2',
  });
  check(http.get(`${BASE}/redirect-to?url=/headers`, { cookies: { own: '3' } }), {
    'after a redirect': (r) => r.json('headers.Cookie') === 'own=3; mine=1; set=2',
  });
}
