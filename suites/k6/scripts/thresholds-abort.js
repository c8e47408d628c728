// A crossed threshold ends the run.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { vus: 1, duration: '20s', thresholds: { checks: [{ threshold: 'rate>0.9', abortOnFail: true }] } };
export default function () { check(1, { never: () => false }); sleep(0.45); }
