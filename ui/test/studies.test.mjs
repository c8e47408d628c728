// The pages of studies: comparison, sweep, capacity, and the index of runs, made by the program from short runs.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { folder, run, squall } from './squall.mjs';
import { lookTwice, stage } from './stage.mjs';

const on = stage();
const look = (...args) => lookTwice(on.browser, ...args);

test('a comparison says what changed and overlays its runs', async () => {
  const html = join(folder, 'compare.html');
  const line = (path) => `${on.target.url}${path} -n 60 -c 2 --threads 1`;
  await squall('compare', '--run', line('/delay/1ms'), line('/delay/20ms'), '--repeat', '4', '--names', 'before,after', '--results', folder, '--out', `html=${html}`);
  await look('compare', html, async (page) => {
    assert.match(await page.textContent('.verdict'), /after is worse than before: .*p50/);
    assert.equal(await page.locator('.chart').count(), 4);
  });
});

test('a sweep draws figures against the level, and links to each run', async () => {
  const results = join(folder, 'sweep');
  await squall('sweep', '--connections', '1..4', '--pause', '0', '--results', results, '--line', 'kept:', '--line', 'new: --no-keepalive', `${on.target.url}/`, '-d', '1s', '--threads', '1');
  const study = join(results, readdirSync(results)[0]);
  await look('sweep', join(study, 'sweep.html'), async (page) => {
    assert.ok((await page.locator('.chart').count()) >= 3);
    assert.match(await page.getAttribute('table a', 'href'), /^runs\/.*\/report\.html$/);
  });
});

test('a search for capacity shows its answer and every probe', async () => {
  const results = join(folder, 'capacity');
  await squall('capacity', '--slo', 'errors<1%', '--start', '20/s', '--max', '40/s', '--probe', '1s', '--pause', '0', '--results', results, `${on.target.url}/`, '--threads', '1');
  const study = join(results, readdirSync(results)[0]);
  await look('capacity', join(study, 'capacity.html'), async (page) => {
    // On a machine that is busy otherwise the probes may not count: that is an answer, too.
    assert.match(await page.textContent('.verdict'), /met at every rate up to the maximum of 40|the generator cannot sustain/);
    assert.ok((await page.locator('tbody tr').count()) >= 2);
  });
});

test('an index links to the page of each run', async () => {
  await run('listed', '-d', '1s', '-c', '1', '--threads', '1', `${on.target.url}/`);
  const html = join(folder, 'index.html');
  await squall('runs', folder, '--name', 'listed', '--html', html);
  await look('index', html, async (page) => {
    assert.match(await page.getAttribute('table a', 'href'), /-listed\/report\.html$/);
  });
});

test('several runs are one page, with each of them in it', async () => {
  const made = [];
  for (const name of ['first', 'second', 'third']) made.push(dirname(await run(name, '-n', '200', '-c', '2', '--threads', '1', `${on.target.url}/delay/5ms`)));
  const html = join(folder, 'merged.html');
  await squall('report', ...made, '--out', `html=${html}`);
  await look('merged', html, async (page) => {
    const runs = page.locator('section', { has: page.locator('h2', { hasText: 'Runs' }) });
    assert.equal(await runs.locator('tbody tr').count(), 3);
    assert.match(await page.textContent('.tiles'), /succeeded\s*600/);
  });
});
