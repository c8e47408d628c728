// Node's fetch walks through the shop: `fetch.mjs URL USER PASSWORD FILE`.
import { readFileSync } from 'node:fs';

const [url, user, password, file] = process.argv.slice(2);
const jar = new Map();
async function ask(path, options = {}) {
  const headers = { ...options.headers, cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; ') };
  const response = await fetch(url + path, { ...options, headers, redirect: 'manual' });
  for (const cookie of response.headers.getSetCookie()) {
    const [, name, value] = /^([^=]*)=([^;]*)/.exec(cookie);
    jar.set(name, value);
  }
  if (response.status >= 400) throw new Error(`${path}: ${response.status}`);
  return response.text();
}
const hidden = (page) => /<input type="hidden" name="([^"]*)" value="([^"]*)"/.exec(page).slice(1);
const post = (pairs) => ({ method: 'POST', body: new URLSearchParams(pairs) });

await ask('/login/', post([hidden(await ask('/login/')), ['username', user], ['password', password]]));
const page = await ask('/account/');
const token = /name="csrf-token" content="([^"]*)"/.exec(page)[1];
const headers = { 'X-CSRF-Token': token, 'Content-Type': 'application/json' };
const made = JSON.parse(await ask('/api/items/', { method: 'POST', headers, body: '{"article":1}' }));
await ask(`/api/items/${made.id}/`);
const body = new FormData();
body.append(...hidden(page));
body.append('file', new Blob([readFileSync(file)]), 'f');
await ask('/upload/', { method: 'POST', body });
await ask('/logout/', post([hidden(page)]));
