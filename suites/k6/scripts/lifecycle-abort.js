// exec.test.abort() has a code of its own.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
import exec from 'k6/execution';
export const options = { iterations: 5 };
export default function () { exec.test.abort('enough'); }
