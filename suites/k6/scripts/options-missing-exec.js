// A function that is not exported is refused.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { scenarios: { s: { executor: 'per-vu-iterations', exec: 'nothere' } } };
export default function () {}
