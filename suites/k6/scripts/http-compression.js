// Bodies are unpacked.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export default function () { for (const how of ['gzip', 'deflate', 'brotli']) check(http.get(`${BASE}/${how}`), { [how]: (r) => r.status === 200 && r.json() !== null }); }
