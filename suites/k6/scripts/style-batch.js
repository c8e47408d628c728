// In the style of comparisons of proxies: batches of requests of many sizes, each with its headers, and a whole options object.
import http from 'k6/http';
import { check } from 'k6';
import { Counter } from 'k6/metrics';
const SIZES = [128, 1024, 10240];
const bytes = new Counter('body_bytes');
export const options = {
  discardResponseBodies: false, insecureSkipTLSVerify: true, noConnectionReuse: false, userAgent: 'comparison/1.0', batch: 10, batchPerHost: 4,
  scenarios: { sizes: { executor: 'shared-iterations', vus: 2, iterations: 6, exec: 'sizes', tags: { kind: 'sizes' } } },
  thresholds: { http_req_failed: ['rate==0'], 'http_req_duration{kind:sizes}': ['p(99)<60000'], body_bytes: ['count==68352'] },
};
export function sizes() {
  const headers = {};
  for (let idx = 0; idx < 12; idx++) headers[`X-Header-${idx}`] = 'v'.repeat(16 + idx);
  const responses = http.batch(SIZES.map((size) => ['GET', `${__ENV.BASE}/bytes/${size}`, null, { headers, responseType: 'binary', tags: { size: String(size) } }]));
  responses.forEach((response, idx) => {
    bytes.add(response.body.byteLength);
    check(response, { 'status is 200': (r) => r.status === 200, 'size is right': (r) => r.body.byteLength === SIZES[idx] });
  });
}
