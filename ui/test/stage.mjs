// What a test file stands on: a browser and a target, from its first test to its last, and a folder of screenshots.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { launch, open } from './browser.mjs';
import { endRuns, folder, startTarget } from './squall.mjs';

/** Looked at by people: `SHOTS=DIR npm test` keeps them. */
export const shots = process.env.SHOTS ?? join(folder, 'shots');
mkdirSync(shots, { recursive: true });

export const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };

/** The browser and the target of this file, there when its tests run; `prepare` has what else they stand on. */
export function stage(prepare = async () => {}) {
  const on = {};
  before(async () => {
    on.browser = await launch();
    on.target = await startTarget();
    await prepare(on);
  });
  after(async () => {
    endRuns();
    on.target?.stop();
    await on.browser?.close();
  });
  return on;
}

/** Opens a page of the disk: no error, no request, nothing wider than its screen. `check` may look further. */
export async function look(browser, name, path, options = {}, check = async () => {}) {
  const { page, context, faults } = await open(browser, `file://${path}`, options);
  await page.waitForSelector('main h1');
  await page.waitForFunction(() => [...document.querySelectorAll('.chart')].every((chart) => chart.querySelector('canvas')));
  await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
  assert.deepEqual(faults, [], name);
  const excess = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(excess <= 0, `${name} is ${excess} px too wide`);
  await check(page);
  await context.close();
}

/** The same in light and on a dark phone. */
export async function lookTwice(browser, name, path, check) {
  await look(browser, name, path, {}, check);
  await look(browser, `${name}-phone`, path, { ...PHONE, colorScheme: 'dark' }, check);
}
