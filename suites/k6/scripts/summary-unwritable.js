// A summary that cannot be written does not hide that a threshold was crossed.
import { check } from 'k6';

export const options = { thresholds: { checks: ['rate==1'] } };

export default function () {
  check(1, { two: (one) => one === 2 });
}

export function handleSummary() {
  return { '/dev/null/none.txt': 'text' };
}
