// What counts as failed.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
export const options = { thresholds: { http_req_failed: ['rate==0.25'] } };
export default function () {
  http.get(`${BASE}/status/404`, { responseCallback: http.expectedStatuses(404) });
  http.get(`${BASE}/status/404`);
  http.get(`${BASE}/get`); http.get(`${BASE}/get`);
}
