// An unknown field of a scenario is refused.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { scenarios: { s: { executor: 'constant-vus', vus: 1, duration: '1s', nonsense: 1 } } };
export default function () {}
