// A bad name of a metric.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
import { Counter } from 'k6/metrics';
new Counter('bad name');
export default function () {}
