// Rejections that the script handles, of promises that it returns.
import { check } from 'k6';
const handled = () => { const promise = Promise.reject(new Error('no')); promise.catch(() => {}); return promise; };
export const options = { iterations: 2 };
export function setup() { return handled(); }
export default function () { check(1, { began: () => true }); return handled(); }
