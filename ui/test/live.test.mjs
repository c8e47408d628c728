// `--web`: the page follows its run, stops it, and finds it again.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, open } from './browser.mjs';
import { startLive, startTarget } from './squall.mjs';

let browser, target;

before(async () => {
  browser = await launch();
  target = await startTarget();
});

after(async () => {
  target?.stop();
  await browser?.close();
});

const LOAD = ['-c', '2', '--threads', '1', '--web=127.0.0.1:0'];

const points = (page) => page.evaluate(() => document.querySelector('.chart .u-legend') && document.querySelectorAll('.chart').length);

test('a live page draws what comes and says when the run has ended', async () => {
  const run = await startLive(...LOAD, '-d', '4s', `${target.url}/delay/5ms`);
  const { page, context, faults } = await open(browser, run.url);
  await page.waitForSelector('.tiles');
  assert.match(await page.textContent('#live-state'), /running 0:0\d of 0:04/);
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
  const run = await startLive(...LOAD, '-d', '60s', `${target.url}/delay/5ms`);
  const { page, context } = await open(browser, run.url);
  await page.waitForSelector('.tiles');
  await page.click('#stop');
  await page.waitForFunction(() => document.querySelector('#live-state').textContent === 'ended');
  assert.equal(await run.ended, 0);
  await context.close();
});

test('a page that lost its run says so, and a page that lost its connection is told everything again', async () => {
  const run = await startLive(...LOAD, '-d', '60s', `${target.url}/delay/5ms`);
  const { page, context } = await open(browser, run.url);
  await page.waitForSelector('.tiles');
  await context.setOffline(true);
  await context.setOffline(false);
  await page.reload();
  await page.waitForSelector('.tiles');
  run.kill();
  await page.waitForFunction(() => document.querySelector('#live-state').textContent.includes('trying again'));
  await context.close();
});

test('another site can neither read nor stop a run', async () => {
  const run = await startLive(...LOAD, '-d', '60s', `${target.url}/delay/5ms`);
  assert.equal((await fetch(`${run.url}stop`, { method: 'POST' })).status, 403);
  assert.equal((await fetch(`${run.url}nothing`)).status, 404);
  assert.equal((await fetch(`${run.url}stop`, { method: 'POST', headers: { 'X-Squall': 'stop' } })).status, 202);
  assert.equal(await run.ended, 0);
});
