// Two scenarios, each with its function, tags and environment.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { scenarios: {
  a: { executor: 'per-vu-iterations', vus: 2, iterations: 2, exec: 'first', env: { WHO: 'a' }, tags: { kind: 'x' } },
  b: { executor: 'shared-iterations', vus: 1, iterations: 3, exec: 'second', startTime: '0.2s' } },
  thresholds: { 'http_reqs{scenario:a}': ['count==4'], 'http_reqs{kind:x}': ['count==4'], 'iterations{scenario:b}': ['count==3'] } };
export function first() { check(http.get(`${BASE}/get`), { a: () => __ENV.WHO === 'a' }); }
export function second() { check(http.get(`${BASE}/get`), { b: () => __ENV.WHO === undefined }); }
