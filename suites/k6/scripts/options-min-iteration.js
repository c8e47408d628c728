// Iterations last at least as long as they should.
import { check } from 'k6';
let begin = 0;
export const options = { iterations: 3, minIterationDuration: '200ms' };
export default function () {
  const now = Date.now();
  if (begin) check(now - begin, { 'not shorter': (ms) => ms >= 190 });
  begin = now;
}
