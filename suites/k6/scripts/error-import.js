// An unknown import.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
import x from './nothere.js';
export default function () { x(); }
