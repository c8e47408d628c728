// Headless Chromium walks through the shop: `browser.cjs URL USER PASSWORD FILE`.
const { chromium } = require('playwright-core');

const [url, user, password, file] = process.argv.slice(2);
(async () => {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
  const page = await browser.newPage();
  await page.goto(`${url}/login/`);
  await page.fill('[name=username]', user);
  await page.fill('[name=password]', password);
  await page.click('button');
  await page.click('#make');
  await page.waitForFunction(() => document.querySelector('output').textContent === 'made 1');
  await page.setInputFiles('[name=file]', file);
  await page.click('#upload button');
  await page.waitForURL(/\/account\/?$/);
  await page.click('#logout button');
  await page.waitForURL(/\/login\/?$/);
  await browser.close();
})();
