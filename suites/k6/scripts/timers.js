// Timers end before the iteration does.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export default async function () { let n = 0; setTimeout(() => { n++; check(n, { timer: (x) => x === 2 }); }, 60); await new Promise((r) => setTimeout(() => { n++; r(); }, 20)); }
