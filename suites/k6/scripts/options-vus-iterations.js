// The short form.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { vus: 2, iterations: 6 };
export default function () { check(__VU, { 'VU counts from 1': (v) => v === 1 || v === 2 }); }
