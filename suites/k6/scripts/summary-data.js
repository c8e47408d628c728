// The data of handleSummary: every kind of metric, thresholds that hold and that do not, groups, checks, what setup() gave.
// With OUT, its shape is written there: names and counts as they are, measured values as what they are.
import http from 'k6/http';
import { check, group } from 'k6';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';

const counter = new Counter('own_counter');
const gauge = new Gauge('own_gauge');
const rate = new Rate('own_rate');
const time = new Trend('own_time', true);
const trend = new Trend('own_trend');
new Counter('own_unused');
new Counter('own_unused_with_threshold');

export const options = {
  scenarios: { main: { executor: 'per-vu-iterations', vus: 2, iterations: 3, tags: { kind: 'x' } } },
  thresholds: {
    http_req_duration: ['p(95)<60000', 'avg<0'],
    'http_reqs{nothing:here}': ['count<1'],
    'own_counter{kind:x}': ['count>1'],
    own_rate: [{ threshold: 'rate>0.9', abortOnFail: false }],
    own_trend: [],
    own_unused_with_threshold: ['count>=0'],
  },
};

export function setup() {
  return { token: 'abc', list: [1, { none: null }] };
}

export default function () {
  group('outer', () => {
    check(1, { 'in outer': (one) => one === 1 });
    group('inner', () => {
      check(http.get(`${__ENV.BASE}/get`), { ok: (r) => r.status === 200, no: (r) => r.status === 201 });
    });
  });
  check(2, { top: () => true });
  counter.add(2);
  gauge.add(5);
  gauge.add(3);
  rate.add(true);
  time.add(12);
  trend.add(1.5);
}

export function handleSummary(data) {
  return __ENV.OUT ? { [__ENV.OUT]: JSON.stringify(shape('', JSON.parse(JSON.stringify(data)))) } : undefined;
}

function shape(name, value) {
  if (Array.isArray(value)) {
    const parts = value.map((part) => shape('', part));
    return parts.every((part) => part && part.name) ? parts.sort((a, b) => (a.name < b.name ? -1 : 1)) : parts;
  }
  if (value !== null && typeof value === 'object') {
    const names = Object.keys(value).sort();
    return Object.fromEntries(names.map((one) => [one, shape(one, value[one])]));
  }
  const isOfThisRun = ['script', 'generated_at', 'k6_version'].includes(name);
  const isMeasured = typeof value === 'number' && !['passes', 'fails', 'total'].includes(name);
  return isOfThisRun || isMeasured ? typeof value : value;
}
