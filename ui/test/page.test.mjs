// The page of a run in every state: it is drawn without an error or a request, and its charts do what they say.
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { open, tableRows } from './browser.mjs';
import { aDay, run, twentyMachines, variant } from './squall.mjs';
import { PHONE, look, shots, stage } from './stage.mjs';

let good, failed;
const on = stage(async (on) => {
  good = await run('good', '-r', '300/s', '-d', '5s', '--warmup', '1s', '--threshold', 'p(99)<500', '--threads', '1', `${on.target.url}/delay/2ms`);
  failed = await run('failed', '-c', '4', '-d', '2s', '--threshold', 'errors<1%', '--threads', '1', `${on.target.url}/anything`, `${on.target.url}/status/503`);
});

test('every state is drawn without an error, a request, or anything wider than its screen', async () => {
  const unreachable = await run('unreachable', '-d', '2s', '-c', '2', 'http://127.0.0.1:9/');
  const states = [
    ['light', good, { colorScheme: 'light' }],
    ['dark', good, { colorScheme: 'dark' }],
    ['phone', good, PHONE],
    ['two-seconds', failed, { colorScheme: 'light' }],
    ['failed-dark', failed, { colorScheme: 'dark' }],
    ['unreachable', unreachable, {}],
    ['day', variant(good, 'day', aDay), {}],
    ['twenty-machines', variant(good, 'machines', twentyMachines), {}],
    ['twenty-machines-phone', variant(good, 'machines', twentyMachines), { ...PHONE, colorScheme: 'dark' }],
  ];
  for (const [name, path, options] of states) {
    await look(on.browser, name, path, options, async (page) => {
      const [verdict, chart] = [await page.locator('.verdict').boundingBox(), await page.locator('.chart').first().boundingBox()];
      assert.ok(verdict.y < chart.y, `${name}: the verdict comes first`);
    });
    assert.ok(statSync(path).size < 3e6, `${name} has ${statSync(path).size} bytes`);
  }
});

test('the verdict comes first, and thresholds say by how much', async () => {
  const { page, context } = await open(on.browser, `file://${failed}`);
  assert.match(await page.textContent('.verdict strong'), /1 of 1 thresholds missed/);
  assert.match(await page.textContent('main section table'), /✗ missed.*errors<1%.*over/);
  await context.close();
});

test('dragging over one chart zooms all over time, and a button shows the whole run again', async () => {
  const { page, context, faults } = await open(on.browser, `file://${good}`);
  const first = page.locator('.chart .u-over').first();
  const box = await first.boundingBox();
  await page.mouse.move(box.x + box.width * 0.4, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.8, box.y + 60, { steps: 5 });
  await page.mouse.up();
  const bar = page.locator('.zoombar');
  await bar.waitFor({ state: 'visible' });
  assert.match(await bar.textContent(), /Showing 0:0\d\.\d to 0:0\d\.\d/);
  await page.screenshot({ path: join(shots, 'zoomed.png') });
  await page.click('#zoom-reset');
  await bar.waitFor({ state: 'hidden' });
  assert.deepEqual(faults, []);
  await context.close();
});

test('the cursor is the same in every chart over time', async () => {
  const { page, context } = await open(on.browser, `file://${good}`);
  const charts = page.locator('.charts').first().locator('.chart');
  await charts.first().locator('.u-over').hover();
  const times = await charts.evaluateAll((all) => all.map((chart) => chart.querySelector('.u-legend .u-value')?.textContent));
  assert.ok(times.length > 5);
  assert.notEqual(times[0], '–');
  assert.equal(new Set(times).size, 1, times.join(' '));
  await context.close();
});

test('a name in a legend switches its line off and on, by mouse and by keyboard', async () => {
  const { page, context } = await open(on.browser, `file://${good}`);
  const label = page.locator('.chart').nth(1).locator('.u-series').nth(1);
  const isOff = () => label.evaluate((row) => row.classList.contains('u-off'));
  await label.locator('th').click();
  assert.equal(await isOff(), true);
  await label.locator('th').focus();
  await page.keyboard.press('Enter');
  assert.equal(await isOff(), false);
  await context.close();
});

test('dark and light are switched and remembered, and every chart has its table', async () => {
  const { page, context, faults } = await open(on.browser, `file://${good}`, { colorScheme: 'light' });
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  assert.equal(await theme(), 'light');
  await page.click('#theme');
  assert.equal(await theme(), 'dark');
  await page.reload();
  assert.equal(await theme(), 'dark');
  const table = page.locator('.chart details').nth(1);
  await tableRows(table);
  assert.match(await table.textContent(), /time.*p50.*p90.*p99.*0:0/);
  await page.locator('.chart button', { hasText: 'log scale' }).first().click();
  await page.emulateMedia({ media: 'print' });
  await page.screenshot({ path: join(shots, 'print.png'), fullPage: true });
  assert.deepEqual(faults, []);
  await context.close();
});

test('text from strangers stays text', async () => {
  const evil = '</script><img src=x onerror="document.title=1"><b>';
  const path = variant(failed, 'evil', (page) => {
    page.summary.name = evil;
    page.summary.rows[0].url = evil;
    page.summary.errors[0].example = evil;
    page.summary.environment[evil] = evil;
  });
  const { page, context, faults } = await open(on.browser, `file://${path}`);
  assert.equal(await page.textContent('h1'), evil);
  assert.equal(await page.locator('main img').count(), 0);
  assert.deepEqual(faults, []);
  await context.close();
});
