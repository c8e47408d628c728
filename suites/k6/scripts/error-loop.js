// An iteration that never ends is interrupted when its time is over, while other users go on.
import { sleep } from 'k6';

export const options = {
  scenarios: {
    endless: { executor: 'constant-vus', vus: 2, duration: '1s', gracefulStop: '1s', exec: 'endless' },
    other: { executor: 'per-vu-iterations', vus: 1, iterations: 5, exec: 'other' },
  },
};

export function endless() {
  while (true);
}

export function other() {
  sleep(0.1);
}
