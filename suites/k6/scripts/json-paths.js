// GJSON paths.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export default function () { const r = http.post(`${BASE}/post`, JSON.stringify({ a: [{ n: 1 }, { n: 2 }], 'b.c': 3 }), { headers: { 'Content-Type': 'application/json' } }); check(r, { path: (r) => r.json('json.a.1.n') === 2, each: (r) => r.json('json.a.#.n').length === 2, query: (r) => r.json('json.a.#(n==2).n') === 2, escaped: (r) => r.json('json.b\\.c') === 3 }); }
