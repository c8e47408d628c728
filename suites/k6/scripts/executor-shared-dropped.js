// Iterations that there was no time for are dropped.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { scenarios: { s: { executor: 'shared-iterations', vus: 2, iterations: 100, maxDuration: '1s', gracefulStop: '0s' } } };
export default function () { sleep(0.4); }
