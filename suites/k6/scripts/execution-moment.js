// What the run is like at the moment.
import { check, sleep } from 'k6';
import exec from 'k6/execution';
export const options = { iterations: 4, thresholds: { 'iterations{nth:3}': ['count==1'] } };
export default function () {
  exec.vu.tags.nth = __ITER;
  check(exec, {
    completed: (e) => e.instance.iterationsCompleted === __ITER,
    users: (e) => e.instance.vusActive === 1 && e.instance.vusInitialized === 1,
    progress: (e) => e.scenario.progress === __ITER / 4,
  });
}
