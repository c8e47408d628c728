// Thresholds that hold.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
import { Counter, Trend, Rate, Gauge } from 'k6/metrics';
const c = new Counter('my_c'), t = new Trend('my_t'), r = new Rate('my_r'), g = new Gauge('my_g');
export const options = { iterations: 4, thresholds: { my_c: ['count==8'], my_t: ['avg==1.5', 'p(90)<=3', 'max==3', 'med==1.5'], my_r: ['rate==0.5'], my_g: ['value==3'] } };
export default function () { c.add(2); t.add(__ITER); r.add(__ITER % 2 === 0); g.add(__ITER); }
