// The area under the ramp.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { scenarios: { s: { executor: 'ramping-arrival-rate', startRate: 0, stages: [{ duration: '2s', target: 20 }, { duration: '30ms', target: 20 }], preAllocatedVUs: 5 } } };
export default function () { check(1, { ran: (x) => x === 1 }); }
