// Without options: one iteration.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export default function () { check(__ITER, { 'first': (i) => i === 0 }); }
