// A k6 script: `squall run FILE` runs it, `squall inspect FILE` shows its options.
import http from 'k6/http';
import { check, sleep } from 'k6';

export const options = {
  // Ten virtual users for thirty seconds. Or in steps: stages: [{ duration: '10s', target: 10 }, { duration: '1m', target: 50 }]
  vus: 10,
  duration: '30s',
  // What must hold for the run to pass; otherwise the exit code is 99.
  thresholds: {
    http_req_failed: ['rate<0.01'],
    http_req_duration: ['p(95)<500'],
  },
};

const TARGET = __ENV.TARGET || 'TARGET_URL';

// Called once, before the users start; what it returns is given to each of them.
export function setup() {
  return { begun: Date.now() };
}

// What each user does, again and again.
export default function (data) {
  const response = http.get(TARGET, { tags: { name: 'front page' } });
  check(response, {
    'status is 200': (r) => r.status === 200,
  });
  sleep(1);
}

// Called once, after the last user has ended.
export function teardown(data) {
  console.log(`took ${Math.round((Date.now() - data.begun) / 1000)} s`);
}
