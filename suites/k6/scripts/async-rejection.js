// A rejection that nobody handles.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { iterations: 2 };
export default async function () { check(1, { began: () => true }); await Promise.reject(new Error('no')); }
