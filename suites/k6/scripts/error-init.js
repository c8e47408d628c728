// An exception in the init code.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
throw new Error('init');
export default function () {}
