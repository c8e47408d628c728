// A method that the metric does not have.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { thresholds: { http_reqs: ['p(95)<1'] } };
export default function () {}
