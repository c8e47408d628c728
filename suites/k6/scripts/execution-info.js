// Where the script is.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
import exec from 'k6/execution';
export const options = { vus: 1, iterations: 2, thresholds: { 'checks{mine:yes}': ['rate==1'] } };
export default function () {
  exec.vu.tags.mine = 'yes';
  check(exec, { scenario: (e) => e.scenario.name === 'default' && e.scenario.executor === 'shared-iterations', vu: (e) => e.vu.idInTest === 1, iteration: (e) => e.vu.iterationInScenario === __ITER });
}
