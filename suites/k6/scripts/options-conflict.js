// iterations and stages together are refused.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { iterations: 5, stages: [{ duration: '1s', target: 1 }] };
export default function () {}
