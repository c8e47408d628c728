// The pages of studies: comparison, sweep, capacity, and the index of runs, made by the program from short runs.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { launch, open } from './browser.mjs';
import { folder, program, run, startTarget } from './squall.mjs';

const shots = process.env.SHOTS ?? join(folder, 'shots');
mkdirSync(shots, { recursive: true });
const squall = (...args) => promisify(execFile)(program, args).catch((error) => { if (typeof error.code !== 'number') throw error; return error; });

let browser, target;

before(async () => {
  browser = await launch();
  target = await startTarget();
});

after(async () => {
  target?.stop();
  await browser?.close();
});

/** Opens a page in light and on a dark phone; both must be clean. */
async function look(name, path, check) {
  for (const [suffix, options] of [['', {}], ['-phone', { viewport: { width: 390, height: 844 }, isMobile: true, colorScheme: 'dark' }]]) {
    const { page, context, faults } = await open(browser, `file://${path}`, options);
    await page.waitForSelector('main h1');
    await page.waitForFunction(() => [...document.querySelectorAll('.chart')].every((chart) => chart.querySelector('canvas')));
    await page.screenshot({ path: join(shots, `${name}${suffix}.png`), fullPage: true });
    assert.deepEqual(faults, [], name + suffix);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, `${name}${suffix} is too wide`);
    await check(page);
    await context.close();
  }
}

test('a comparison says what changed and overlays its runs', async () => {
  const html = join(folder, 'compare.html');
  const line = (path) => `${target.url}${path} -n 60 -c 2 --threads 1`;
  await squall('compare', '--run', line('/delay/1ms'), line('/delay/20ms'), '--repeat', '4', '--names', 'before,after', '--results', folder, '--out', `html=${html}`);
  await look('compare', html, async (page) => {
    assert.match(await page.textContent('.verdict'), /after is worse than before: .*p50/);
    assert.equal(await page.locator('.chart').count(), 4);
  });
});

test('a sweep draws figures against the level, and links to each run', async () => {
  const results = join(folder, 'sweep');
  await squall('sweep', '--connections', '1..4', '--pause', '0', '--results', results, '--line', 'kept:', '--line', 'new: --no-keepalive', `${target.url}/`, '-d', '1s', '--threads', '1');
  const study = join(results, readdirSync(results)[0]);
  await look('sweep', join(study, 'sweep.html'), async (page) => {
    assert.ok((await page.locator('.chart').count()) >= 3);
    assert.match(await page.getAttribute('table a', 'href'), /^runs\/.*\/report\.html$/);
  });
});

test('a search for capacity shows its answer and every probe', async () => {
  const results = join(folder, 'capacity');
  await squall('capacity', '--slo', 'errors<1%', '--start', '20/s', '--max', '40/s', '--probe', '1s', '--pause', '0', '--results', results, `${target.url}/`, '--threads', '1');
  const study = join(results, readdirSync(results)[0]);
  await look('capacity', join(study, 'capacity.html'), async (page) => {
    // On a machine that is busy otherwise the probes may not count: that is an answer, too.
    assert.match(await page.textContent('.verdict'), /never missed, up to 40|the generator cannot make/);
    assert.ok((await page.locator('tbody tr').count()) >= 2);
  });
});

test('an index links to the page of each run', async () => {
  await run('listed', '-d', '1s', '-c', '1', '--threads', '1', `${target.url}/`);
  const html = join(folder, 'index.html');
  await squall('runs', folder, '--name', 'listed', '--html', html);
  await look('index', html, async (page) => {
    assert.match(await page.getAttribute('table a', 'href'), /-listed\/report\.html$/);
  });
});
