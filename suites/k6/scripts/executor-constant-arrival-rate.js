// Ten iterations a second for two seconds.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { scenarios: { s: { executor: 'constant-arrival-rate', rate: 10, duration: '1950ms', preAllocatedVUs: 5 } } };
export default function () { check(1, { ran: (x) => x === 1 }); }
