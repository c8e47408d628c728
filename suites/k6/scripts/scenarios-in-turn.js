// A scenario begins when another one ends.
import { check, sleep } from 'k6';
export const options = {
  scenarios: {
    first: { executor: 'constant-vus', vus: 2, duration: '1s', gracefulStop: '0s' },
    then: { executor: 'per-vu-iterations', vus: 2, iterations: 1, startTime: '1s', exec: 'then' },
  },
};
export default function () { sleep(2); }
export function then() { check(1, { ran: true }); }
