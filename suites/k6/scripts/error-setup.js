// An exception in setup.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export function setup() { throw new Error('setup'); }
export default function () {}
