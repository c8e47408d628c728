// setup gives data, teardown gets it.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { vus: 2, iterations: 4 };
export function setup() { return { n: http.get(`${BASE}/get`).status, list: [1] }; }
export default function (data) { check(data, { number: (d) => d.n === 200, list: (d) => d.list[0] === 1 }); }
export function teardown(data) { check(data, { 'in teardown': (d) => d.n === 200 }); }
