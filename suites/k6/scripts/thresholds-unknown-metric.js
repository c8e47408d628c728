// A threshold on what is no metric.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { thresholds: { nonsense: ['count>1'] } };
export default function () {}
