// A file is opened in the init code.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
const text = open('./open-file.txt');
export default function () { check(text, { read: (t) => t.trim() === 'content', 'not later': () => { try { open('./open-file.txt'); return false; } catch (e) { return true; } } }); }
