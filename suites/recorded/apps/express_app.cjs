// A shop made with Express: express-session and csrf-csrf. `express_app.cjs PORT FOLDER` serves it; NODE_PATH has the packages.
// Every secret that it gives out goes into FOLDER/secrets, one on a line.
const { appendFileSync, readFileSync } = require('node:fs');
const { randomBytes, randomInt } = require('node:crypto');
const express = require('express');
const session = require('express-session');
const cookies = require('cookie-parser');
const { doubleCsrf } = require('csrf-csrf');

const [port, folder] = process.argv.slice(2);
const account = readFileSync(`${__dirname}/account.html`, 'utf8');
const csrf = doubleCsrf({
  getSecret: () => 'csrf of this suite',
  getSessionIdentifier: (req) => req.session.id,
  getCsrfTokenFromRequest: (req) => req.headers['x-csrf-token'] || (req.body && req.body._csrf),
  cookieName: 'x-csrf-token',
  cookieOptions: { secure: false },
});
const app = express();
app.use((req, res, next) => {
  const end = res.end.bind(res);
  res.end = (body, ...rest) => {
    const result = end(body, ...rest);
    const set = [res.getHeader('set-cookie') || []].flat().map((cookie) => /=([^;]*)/.exec(cookie)[1]);
    const shown = [...String(body || '').matchAll(/(?:value|content)="([\w.|-]{32,})"/g)].map((found) => found[1]);
    appendFileSync(`${folder}/secrets`, [...set, ...shown].filter(Boolean).map((secret) => `${secret}\n`).join(''));
    return result;
  };
  next();
});
app.use(cookies());
app.use(session({ secret: randomBytes(16).toString('hex'), resave: false, saveUninitialized: true }));
app.use(express.urlencoded({ extended: false }), express.json());
app.use('/upload/', express.raw({ type: 'multipart/*', limit: '1mb' }), (req, res, next) => {
  const text = req.body.toString('latin1');
  req.file = /name="file"[^]*?\r\n\r\n([^]*?)\r\n--/.exec(text)?.[1];
  req.body = { _csrf: /name="_csrf"\r\n\r\n([^\r]*)/.exec(text)?.[1] };
  next();
});

const hidden = (token) => `<input type="hidden" name="_csrf" value="${token}">`;
const loggedIn = (req, res, next) => (req.session.user ? next() : res.redirect('/login/'));
const items = new Map();
app.get('/login/', (req, res) => {
  const token = csrf.generateCsrfToken(req, res);
  res.send(`<!DOCTYPE html><form method="post">${hidden(token)}<input name="username"><input type="password" name="password"><button>Log in</button></form>`);
});
app.use(csrf.doubleCsrfProtection);
app.post('/login/', (req, res) => {
  if (req.body.username !== 'alice' || req.body.password !== process.env.PASSWORD) return res.status(401).end();
  req.session.regenerate(() => {
    req.session.user = 'alice';
    res.redirect('/account/');
  });
});
app.get('/account/', loggedIn, (req, res) => {
  const token = csrf.generateCsrfToken(req, res);
  res.send(account.replaceAll('HIDDEN', hidden(token)).replace('TOKEN', token));
});
app.post('/api/items/', loggedIn, (req, res) => {
  const id = randomInt(1e9, 1e10);
  items.set(String(id), { owner: req.session.id, content: req.body });
  res.status(201).json({ id });
});
app.get('/api/items/:id/', loggedIn, (req, res) => {
  const item = items.get(req.params.id);
  item?.owner === req.session.id ? res.json(item.content) : res.status(404).end();
});
app.post('/upload/', loggedIn, (req, res) => {
  const expected = Buffer.from(Array.from({ length: 1024 }, (_, at) => at % 256)).toString('latin1');
  req.file === expected ? res.redirect('/account/') : res.status(400).end();
});
app.post('/logout/', (req, res) => req.session.destroy(() => res.redirect('/login/')));
app.listen(Number(port), '127.0.0.1');
