// An exception in teardown.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export default function () { check(1, { one: () => true }); }
export function teardown() { throw new Error('teardown'); }
