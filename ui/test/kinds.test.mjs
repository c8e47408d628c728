// The page of every kind of run, made for real: handshakes, idle connections, a k6 script, a replay, a plan with steps and monitors.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { tableRows } from './browser.mjs';
import { folder, program, run, squall } from './squall.mjs';
import { lookTwice, stage } from './stage.mjs';

const on = stage();
const look = (...args) => lookTwice(on.browser, ...args);
let tls, address;

before(async () => {
  tls = spawn(program, ['target', '--tls', '--http3', '--threads', '1'], { stdio: ['ignore', 'pipe', 'ignore'] });
  address = await new Promise((resolve) => tls.stdout.once('data', (text) => resolve(new URL(String(text).trim()).host)));
});

after(() => tls?.kill('SIGTERM'));

/** A file of this test file's folder. */
function file(name, text) {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

/** Rows of the section with this title. */
const rows = (page, title) => page.locator('section', { has: page.locator('h2', { hasText: title }) }).locator('tbody tr');

/** The same without what charts add, whose legends are tables. */
const partRows = (page, title) => page.locator('section', { has: page.locator('h2', { hasText: title }) }).locator('.parts tbody tr');

test('handshakes', async () => {
  await look('handshakes', await run('handshakes', 'handshake', address, '-c', '4', '-d', '2s', '--insecure', '-t', '1'), async (page) => {
    assert.match(await rows(page, 'Handshakes').first().textContent(), /^full/);
    assert.match(await rows(page, 'Negotiated').first().textContent(), /TLS 1\.3/);
  });
});

test('HTTP/3', async () => {
  await look('http3', await run('http3', `h3://${address}/bytes/10000`, '-c', '4', '-d', '3s', '--insecure', '--threads', '1'), async (page) => {
    const facts = await page.locator('section', { has: page.locator('h2', { hasText: 'QUIC' }) }).locator('.facts').textContent();
    assert.match(facts, /4 connections.*0 lost.*bytes per datagram.*congestion window.*RTT p50/);
    const titles = await page.locator('.chart h3').allTextContents();
    assert.deepEqual(titles.filter((title) => /window|trip/.test(title)), ['Congestion window', 'Round-trip time']);
  });
});

test('idle connections', async () => {
  await look('idle', await run('idle', 'idle', new URL(on.target.url).host, '-c', '20', '-d', '2s'), async (page) => {
    assert.match(await page.textContent('.facts'), /20 opened/);
  });
});

test('WebSockets that the server closes', async () => {
  const url = on.target.url.replace('http', 'ws');
  await look('websockets', await run('websockets', 'ws', `${url}/ws/echo?close-after=10&code=4001`, '-c', '10', '-d', '4s', '--pause', '50ms', '--threads', '1'), async (page) => {
    assert.match(await page.textContent('.tiles'), /messages per second.*median message latency/s);
    assert.match(await rows(page, 'Message latency').first().textContent(), /^latency/);
    const closes = await rows(page, 'Closes').allTextContents();
    assert.ok(closes.some((text) => /^4001the server/.test(text)) && closes.some((text) => /^1000squall/.test(text)), `${closes}`);
    const charts = await page.locator('.chart h3').allTextContents();
    for (const title of ['Messages', 'Message latency', 'Open', 'Disconnects and reconnects']) assert.ok(charts.includes(title), `${title} in ${charts}`);
  });
});

test('streams of events', async () => {
  await look('streams', await run('streams', 'stream', `${on.target.url}/sse?count=20&interval=20ms`, '-c', '10', '-d', '4s', '--slo', 'first<500ms,gap:p(95)<1s', '--threads', '1'), async (page) => {
    assert.match(await page.textContent('.tiles'), /events per second.*median gap/s);
    assert.match(await rows(page, 'Events').first().textContent(), /^first event/);
    const charts = await page.locator('.chart h3').allTextContents();
    for (const title of ['Events', 'Time to first event', 'Gaps']) assert.ok(charts.includes(title), `${title} in ${charts}`);
  });
});

test('loads of messages, events and requests at once', async () => {
  const plan = file('messages.yaml', `steps:
  - name: all at once
    loads:
      - { name: fast, ws: '${on.target.url.replace('http', 'ws')}/ws/echo', connections: 5, pause: 20ms, duration: 3s, threads: 1 }
      - { name: slow, ws: '${on.target.url.replace('http', 'ws')}/ws/echo?delay=50ms', connections: 5, duration: 3s, threads: 1 }
      - { name: feed, stream: '${on.target.url}/sse?count=20&interval=20ms', connections: 5, duration: 3s, threads: 1 }
      - { name: browse, http: '${on.target.url}/delay/5ms', connections: 2, duration: 3s, threads: 1 }
`);
  await look('messages', await run('messages', 'run', plan), async (page) => {
    const charts = await page.locator('.chart h3').allTextContents();
    for (const title of ['WebSockets: messages', 'Streams: events', 'Messages by load', 'Messages: p99 by load']) assert.ok(charts.includes(title), `${title} in ${charts}`);
    for (const title of ['Messages', 'Events', 'Gaps']) assert.ok(!charts.includes(title), 'messages and events are not added up');
    assert.equal(await partRows(page, 'Loads').count(), 4);
    assert.match(await partRows(page, 'Loads').filter({ hasText: 'browse' }).textContent(), /––––/);
  });
});

test('a k6 script', async () => {
  const script = file('script.js', `import http from 'k6/http';
import { check, group } from 'k6';
export const options = { vus: 2, duration: '2s', thresholds: { http_req_duration: ['p(95)<2000'], checks: ['rate>0.9'] } };
export default function () {
  group('front', () => check(http.get('${on.target.url}/delay/5ms'), { 'status is 200': (r) => r.status === 200 }));
}`);
  await look('script', await run('script', 'run', script), async (page) => {
    assert.match(await rows(page, 'Checks').textContent(), /status is 200.*front/);
    assert.ok((await rows(page, 'Metrics of the script').count()) > 3);
  });
});

test('a replay of recorded traffic', async () => {
  const log = Array.from({ length: 60 }, (_, idx) => `127.0.0.1 - - [10/Oct/2026:13:55:${String(30 + Math.floor(idx / 20)).padStart(2, '0')} +0000] "GET /status/200?n=${idx} HTTP/1.1" 200 6 "-" "curl/8"`);
  await look('replay', await run('replay', 'replay', file('access.log', `${log.join('\n')}\n`), '--to', on.target.url), async (page) => {
    assert.match(await page.textContent('.tiles'), /succeeded\s*60/);
    assert.match(await page.textContent('.facts'), /on time/);
  });
});

test('a plan with steps, loads, machines and monitors', async () => {
  const plan = file('plan.yaml', `machines: { a: local, b: local, watched: local }
monitors:
  - { machine: watched, process: squall }
steps:
  - name: calm
    loads:
      - { name: browse, http: '${on.target.url}/delay/5ms', connections: 2, duration: 2s, on: [a, b], thresholds: ['errors<1%'] }
    pause: 2s
  - name: rush
    loads:
      - { name: buy, http: '${on.target.url}/delay/10ms', connections: 4, duration: 2s, on: [a, b] }
`);
  const { stderr } = await squall('plan', 'check', plan);
  assert.equal(stderr, '');
  await look('plan', await run('plan', 'run', plan), async (page) => {
    assert.equal(await rows(page, 'Steps').count(), 2);
    assert.equal(await partRows(page, 'Machines').count(), 2);
    assert.match(await rows(page, 'Thresholds').first().textContent(), /browse: errors errors<1%/);
    // The pause is a point without figures, at which lines end.
    const latency = page.locator('.chart', { has: page.locator('h3', { hasText: /^Latency$/ }) });
    assert.equal(await (await tableRows(latency)).filter({ hasText: '–––––' }).count(), 1);
    assert.match(await page.locator('p.note', { hasText: 'always zero' }).textContent(), /sockets syn-received/);
    assert.equal(await page.locator('h3', { hasText: 'sockets syn-received' }).count(), 0);
  });
});

test('a plan of requests, handshakes and idle connections never adds them up', async () => {
  const plan = file('mixed.yaml', `machines: { a: local, b: local }
steps:
  - name: requests alone
    loads:
      - { name: calm, http: '${on.target.url}/delay/5ms', rate: 40/s, duration: 2s, on: [a, b], threads: 1 }
  - name: requests, handshakes and idle connections at the same time
    loads:
      - { name: busy, http: '${on.target.url}/delay/5ms', rate: 40/s, duration: 3s, on: [a, b], threads: 1 }
      - { name: shake, handshake: '${address}', insecure: true, rate: 30/s, duration: 3s, on: [a, b], threads: 1 }
      - { name: hold, idle: '${address}', connections: 20, duration: 3s, on: [a, b], threads: 1 }
`);
  await look('mixed', await run('mixed', 'run', plan), async (page) => {
    const titles = await page.locator('.tile-group h3').allTextContents();
    assert.deepEqual(titles, ['Requests', 'Handshakes', 'Idle connections', 'All together']);
    const tiles = (kind) => page.locator('.tile-group', { has: page.locator('h3', { hasText: new RegExp(`^${kind}$`) }) }).textContent();
    assert.match(await tiles('Requests'), /succeeded\s*200/);
    assert.match(await tiles('Handshakes'), /completed\s*90/);
    assert.match(await tiles('Idle connections'), /opened\s*20/);
    // The steps come before the tiles, with a row for each of their loads.
    assert.match(await rows(page, 'Steps').first().textContent(), /^1requests alone0:00.*calm.*80 requests/);
    assert.equal(await rows(page, 'Steps').count(), 4);
    const [steps, group] = [await page.locator('h2', { hasText: 'Steps' }).boundingBox(), await page.locator('.tile-group').first().boundingBox()];
    assert.ok(steps.y < group.y);
    const charts = () => page.locator('section', { has: page.locator('h2', { hasText: 'Over time' }) }).locator('.chart h3').allTextContents();
    const whole = await charts();
    for (const title of ['Requests: rate', 'Handshakes: rate', 'Idle connections: open']) assert.ok(whole.includes(title), `${title} in ${whole}`);
    assert.ok(!whole.includes('Rate') && !whole.includes('Latency'), 'no series of different things together');
    assert.equal(await partRows(page, 'Each load on each machine').count(), 8);
    assert.equal(await partRows(page, 'Machines').count(), 6, 'a row for each machine and what it made');
    const part = page.locator('button.link', { hasText: 'shake' }).last();
    await part.click();
    assert.ok((await charts()).includes('shake on b: rate'));
    await page.selectOption('#scope', '');
    assert.deepEqual(await charts(), whole);
  });
});
