// Checks in groups.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { iterations: 2 };
export default function () { group('outer', () => { check(1, { a: () => true }); group('inner', () => { check(1, { b: (x) => x === 2 }); }); }); }
