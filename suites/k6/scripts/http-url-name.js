// A name that stands for many URLs.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { iterations: 5 };
export default function () { check(http.get(http.url`${BASE}/get?x=${__ITER}`), { ok: (r) => r.status === 200 }); }
