// fail() ends its iteration.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { iterations: 2 };
export default function () { fail('enough'); }
