// handleSummary decides what is written.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export default function () { check(1, { one: () => true }); }
export function handleSummary(data) { return { stdout: `checks ${data.metrics.checks.values.passes} iterations ${data.metrics.iterations.values.count}\n` }; }
