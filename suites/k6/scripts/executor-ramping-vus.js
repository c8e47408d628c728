// Users come and go.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { scenarios: { s: { executor: 'ramping-vus', startVUs: 1, stages: [{ duration: '1s', target: 3 }, { duration: '1s', target: 0 }], gracefulRampDown: '2s' } } };
export default function () { sleep(10); }
