// A value of the wrong type is refused.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { vus: 'many', duration: '1s' };
export default function () {}
