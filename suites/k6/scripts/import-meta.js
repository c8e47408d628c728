// import.meta.resolve.
import { check } from 'k6';
const text = open(import.meta.resolve('./open-file.txt'));
export const options = { iterations: 1 };
export default function () {
  check(null, {
    'a file beside': () => import.meta.resolve('./open-file.txt').startsWith('file:///') && text.length > 0,
    'a module of k6 lies nowhere': () => { try { import.meta.resolve('k6/http'); return false; } catch (error) { return true; } },
  });
}
