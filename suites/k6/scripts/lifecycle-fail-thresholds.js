// A test that is marked as failed has failed of that, whatever its thresholds say.
import exec from 'k6/execution';
export const options = { iterations: 2, thresholds: { iterations: ['count>100'] } };
export default function () {
  exec.test.fail('no more');
}
