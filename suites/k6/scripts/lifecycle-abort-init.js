// A script may end the test before it begins.
import exec from 'k6/execution';
exec.test.abort('not today');
export default function () {}
