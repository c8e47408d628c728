// Which of a name's addresses are used.
import http from 'k6/http';
import { check } from 'k6';
const PORT = __ENV.BASE.split(':')[2];
export const options = { dns: { ttl: 'inf', select: 'first', policy: 'onlyIPv4' } };
export default function () { check(http.get(`http://localhost:${PORT}/get`), { four: (r) => r.remote_ip === '127.0.0.1' }); }
