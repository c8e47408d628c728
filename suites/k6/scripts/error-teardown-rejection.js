// A rejection in teardown that nobody handles.
import { check } from 'k6';
export default function () { check(1, { one: () => true }); }
export async function teardown() { throw new Error('teardown'); }
