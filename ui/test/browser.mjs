// Headless Chromium for the tests: a page whose every error and every request is watched.
import { chromium } from 'playwright-core';
import { existsSync } from 'node:fs';

const PROGRAMS = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

export async function launch() {
  const executablePath = PROGRAMS.find((path) => path && existsSync(path));
  if (!executablePath) throw new Error('no Chromium here: `dev/setup test` installs it, or set CHROMIUM');
  // The sandbox needs rights that containers do not give; the pages are our own.
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
}

/** Opens a URL and collects what must not be there: console errors, and requests other than the page's own. */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const faults = [];
  const origin = url.startsWith('file:') ? url : new URL(url).origin;
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
  page.on('console', (message) => { if (message.type() === 'error' || message.type() === 'warning') faults.push(`console: ${message.text()}`); });
  page.on('request', (request) => { if (!request.url().startsWith(origin) && !request.url().startsWith('data:')) faults.push(`request: ${request.url()}`); });
  await page.goto(url, { waitUntil: url.startsWith('file:') ? 'load' : 'domcontentloaded' });
  return { page, context, faults };
}

/** Opens the table of a chart and gives its rows: they are made after the click, in an event of their own. */
export async function tableRows(chart) {
  await chart.locator('summary').click();
  const rows = chart.locator('tbody tr');
  await rows.first().waitFor();
  return rows;
}
