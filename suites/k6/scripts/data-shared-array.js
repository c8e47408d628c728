// Data that exists once.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
import { SharedArray } from 'k6/data';
const data = new SharedArray('d', () => [{ n: 1 }, { n: 2 }]);
export const options = { vus: 2, iterations: 2 };
export default function () { let refused = false; try { data[0].n = 9; } catch (e) { refused = true; } check(data, { length: (d) => d.length === 2, element: (d) => d[1].n === 2, 'not changed': (d) => d[0].n === 1 }); }
