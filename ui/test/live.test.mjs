// `--web`: the page follows its run, stops it, and finds it again.
import assert from 'node:assert/strict';
import { createServer, connect } from 'node:net';
import { test } from 'node:test';
import { open, tableRows } from './browser.mjs';
import { squall, startLive } from './squall.mjs';
import { stage } from './stage.mjs';

const on = stage();

const LOAD = ['-c', '2', '--threads', '1', '--web=127.0.0.1:0'];

const points = (page) => page.evaluate(() => document.querySelector('.chart .u-legend') && document.querySelectorAll('.chart').length);

test('a live page draws what comes and says when the run has ended', async () => {
  const run = await startLive(...LOAD, '-d', '8s', `${on.target.url}/delay/5ms`);
  const { page, context, faults } = await open(on.browser, run.url);
  await page.waitForSelector('.tiles');
  assert.match(await page.textContent('#live-state'), /running 0:0\d of 0:08/);
  const before = await page.textContent('.tile:nth-child(2) b');
  await page.waitForFunction((before) => document.querySelector('.tile:nth-child(2) b').textContent !== before, before);
  await page.waitForFunction(() => document.querySelector('#live-state').textContent === 'ended');
  assert.ok((await points(page)) > 4);
  assert.equal(await page.locator('#stop').count(), 0);
  assert.equal(await run.ended, 0, 'an open page keeps no run from ending');
  assert.deepEqual(faults, []);
  await context.close();
});

test('the stop button finishes what is open and ends the run', async () => {
  const run = await startLive(...LOAD, '-d', '60s', `${on.target.url}/delay/5ms`);
  const { page, context } = await open(on.browser, run.url);
  await page.waitForSelector('.tiles');
  await page.click('#stop');
  await page.waitForFunction(() => document.querySelector('#live-state').textContent === 'ended');
  assert.equal(await run.ended, 0);
  await context.close();
});

test('a page that lost its connection says so, finds its run again, and has every second of it', async () => {
  const run = await startLive(...LOAD, '-d', '60s', `${on.target.url}/delay/5ms`);
  const way = await startWay(new URL(run.url).port);
  const { page, context } = await open(on.browser, way.url);
  await page.waitForSelector('.tiles');
  const state = (words) => page.waitForFunction((words) => document.querySelector('#live-state').textContent.includes(words), words);
  way.cut();
  await state('trying again');
  await new Promise((resolve) => setTimeout(resolve, 2500));
  await way.mend();
  await state('running');
  const seconds = await (await tableRows(page.locator('.chart').first())).locator('td:first-child').allTextContents();
  assert.ok(seconds.length >= 3, seconds.join(' '));
  assert.equal(new Set(seconds).size, seconds.length, 'no second is there twice');
  run.kill();
  await state('trying again');
  way.cut();
  await context.close();
});

/** A way to a port that can be cut and mended. */
async function startWay(port) {
  const open = new Set();
  const join = (from) => {
    const to = connect(port, '127.0.0.1');
    for (const [one, other] of [[from, to], [to, from]]) {
      open.add(one);
      one.on('error', () => {}).on('close', () => { open.delete(one); other.destroy(); }).pipe(other);
    }
  };
  let server;
  const listen = (at) => new Promise((resolve) => { server = createServer(join).listen(at, '127.0.0.1', resolve).unref(); });
  await listen(0);
  const own = server.address().port;
  return { url: `http://127.0.0.1:${own}/`, cut: () => { server.close(); open.forEach((socket) => socket.destroy()); }, mend: () => listen(own) };
}

test('a zoom and a switched-off line stay while the run goes on', async () => {
  const run = await startLive(...LOAD, '-d', '60s', `${on.target.url}/delay/5ms`);
  const { page, context, faults } = await open(on.browser, run.url);
  await page.waitForSelector('.tiles');
  const seconds = () => page.textContent('.tile:nth-child(2) b');
  const other = (before) => page.waitForFunction((before) => document.querySelector('.tile:nth-child(2) b').textContent !== before, before);
  // The first second that is over draws the charts anew.
  await other('0');
  await other(await seconds());
  const label = page.locator('.chart').nth(1).locator('.u-series').nth(1);
  await label.locator('th').click();
  const bar = page.locator('.zoombar');
  // A finding that comes above the chart moves it away: then once more.
  for (let tries = 0; tries < 10 && !(await bar.isVisible()); tries += 1) {
    const box = await page.locator('.chart .u-over').first().boundingBox();
    await page.mouse.move(box.x + box.width * 0.2, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.7, box.y + 60, { steps: 5 });
    await page.mouse.up();
    await bar.waitFor({ state: 'visible', timeout: 1000 }).catch(() => {});
  }
  await bar.waitFor({ state: 'visible' });
  const [before, zoom] = [await seconds(), await page.textContent('.zoombar span')];
  await other(before);
  assert.equal(await page.textContent('.zoombar span'), zoom);
  assert.equal(await label.evaluate((row) => row.classList.contains('u-off')), true);
  await page.click('#stop');
  assert.equal(await run.ended, 0);
  assert.deepEqual(faults, []);
  await context.close();
});

test('a port that is taken ends before the first request', async () => {
  const port = new URL(on.target.url).port;
  const { code, stderr } = await squall(`--web=127.0.0.1:${port}`, '--no-save', `${on.target.url}/`);
  assert.equal(code, 2);
  assert.match(stderr, /error: cannot listen on 127\.0\.0\.1:\d+.*\n\nhelp: choose another port/);
});

test('another site can neither read nor stop a run', async () => {
  const run = await startLive(...LOAD, '-d', '60s', `${on.target.url}/delay/5ms`);
  assert.equal((await fetch(`${run.url}stop`, { method: 'POST' })).status, 403);
  assert.equal((await fetch(`${run.url}nothing`)).status, 404);
  assert.equal((await fetch(`${run.url}stop`, { method: 'POST', headers: { 'X-Squall': 'stop' } })).status, 202);
  assert.equal(await run.ended, 0);
});
