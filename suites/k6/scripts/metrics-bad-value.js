// A value that is no number is a warning.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
import { Counter } from 'k6/metrics';
const c = new Counter('my_c');
export const options = { thresholds: { my_c: ['count==1'] } };
export default function () { c.add('x'); c.add(null); c.add(true); }
