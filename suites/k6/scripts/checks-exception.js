// A check that throws fails, and ends the iteration.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { iterations: 2 };
export default function () { check(null, { throws: (r) => r.x === 1 }); check(1, { never: () => true }); }
