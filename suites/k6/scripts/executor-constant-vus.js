// A time that each user fills with sleeps.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { scenarios: { s: { executor: 'constant-vus', vus: 2, duration: '1s' } } };
export default function () { sleep(0.6); }
