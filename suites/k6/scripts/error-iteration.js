// An exception ends its iteration, which counts.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { iterations: 3 };
export default function () { if (__ITER === 1) { throw new Error('iteration'); } check(1, { went: () => true }); }
