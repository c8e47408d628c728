import http from 'k6/http';
import { check, group } from 'k6';
import { Counter } from 'k6/metrics';

const orders = new Counter('orders');

export const options = {
  vus: 2,
  iterations: 6,
  thresholds: { checks: ['rate>0.99'], 'http_req_duration{name:order}': ['p(95)<2000'] },
};

export default function () {
  group('browse', () => {
    const page = http.get(`${__ENV.BASE}/get?page=1`);
    check(page, { 'page is served': (r) => r.status === 200 });
  });
  const order = http.post(`${__ENV.BASE}/post`, JSON.stringify({ item: 7 }), { tags: { name: 'order' } });
  if (check(order, { 'order is confirmed': (r) => r.json('json.item') === 7 })) orders.add(1);
}
