import http from 'k6/http';
import { check } from 'k6';

export const options = {
  vus: 2,
  iterations: 10,
  thresholds: { checks: ['rate==1'] },
};

export default function () {
  const response = http.get('http://localhost:8080/status/200');
  check(response, { 'status is 200': (r) => r.status === 200 });
}
