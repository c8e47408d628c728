// handleSummary comes too late to fail the run.
import exec from 'k6/execution';
import { check } from 'k6';
export default function () { check(1, { one: () => true }); }
export function handleSummary() { exec.test.fail('late'); return {}; }
