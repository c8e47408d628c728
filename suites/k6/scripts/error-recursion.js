// An endless recursion ends its iteration.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
function f() { return f() + 1; }
export const options = { iterations: 2 };
export default function () { check(1, { began: () => true }); f(); }
