// The program itself: runs to look at, and pages made from them.
import { spawn, execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const here = fileURLToPath(new URL('.', import.meta.url));
export const program = process.env.SQUALL ?? join(here, '../../target/debug/squall');

/** A folder for everything that a test file leaves behind. */
export const folder = mkdtempSync(join(tmpdir(), 'squall-ui-'));

/** Runs the program to its end, whatever that is: its exit code and what it said. */
export async function squall(...args) {
  try {
    return { code: 0, ...(await promisify(execFile)(program, args)) };
  } catch (error) {
    if (typeof error.code !== 'number') throw error;
    return error;
  }
}

/** Starts the embedded server; resolves to its URL (without a final slash) and a way to end it. */
export function startTarget() {
  const child = spawn(program, ['target', '--threads', '1'], { stdio: ['ignore', 'pipe', 'ignore'] });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.stdout.once('data', (text) => resolve({ url: String(text).trim().replace(/\/$/, ''), stop: () => child.kill('SIGTERM') }));
  });
}

/** Makes a run and resolves to the path of its page. The exit code does not matter: missed thresholds are wanted, too. */
export async function run(name, ...args) {
  const { stderr } = await squall(...args, '--name', name, '--results', folder, '--quiet');
  const made = readdirSync(folder).find((entry) => entry.endsWith(`-${name}`));
  if (!made) throw new Error(`no run \`${name}\`: ${stderr}`);
  return join(folder, made, 'report.html');
}

/** Runs that were started and have not ended. */
const live = new Set();

/** Ends the runs that a failed test has left behind. */
export const endRuns = () => live.forEach((child) => child.kill('SIGKILL'));

/** Starts a run with `--web`; resolves to the page's URL once it listens. */
export function startLive(...args) {
  const child = spawn(program, ['--no-save', ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  live.add(child);
  const ended = new Promise((resolve) => child.on('exit', (code) => { live.delete(child); resolve(code); }));
  return new Promise((resolve, reject) => {
    let text = '';
    child.on('error', reject);
    child.stderr.on('data', (more) => {
      text += more;
      const url = /http:\/\/127\.0\.0\.1:\d+\//.exec(text.split('live page').at(1) ?? '');
      if (url) resolve({ url: url[0], ended, kill: () => child.kill('SIGKILL') });
    });
    ended.then(() => reject(new Error(`the run ended before its page was there: ${text}`)));
  });
}

const DATA = /(<script type="application\/json" id="data">)([\s\S]*?)(<\/script>)/;

/** A page like another one, with changed data. */
export function variant(path, name, change) {
  const html = readFileSync(path, 'utf8');
  const data = JSON.parse(DATA.exec(html)[2]);
  const changed = JSON.stringify(change(data) ?? data).replaceAll('<', '\\u003c');
  const made = join(folder, `${name}.html`);
  writeFileSync(made, html.replace(DATA, (_, before, __, after) => before + changed + after));
  return made;
}

/** A day: the points of a short run again and again, 72 s each, with steps and a lost machine marked. */
export function aDay(page) {
  const points = page.series.points.filter((point) => point.v[1] > 0.5);
  const [at, span] = [page.series.columns.indexOf('at_s'), page.series.columns.indexOf('span_s')];
  page.series.points = Array.from({ length: 1200 }, (_, idx) => {
    const like = points[idx % points.length];
    const wave = 1 + 0.5 * Math.sin(idx / 60);
    const v = like.v.map((value, column) => (column === at ? idx * 72 : column === span ? 72 : value === null ? null : Math.round(value * wave * (column > 1 && column < 12 ? 72 : 1) * 100) / 100));
    return { ...like, v, h: like.h.map((value, i) => (i % 2 === 1 ? value * 72 : value)) };
  });
  page.summary.duration_s = 86_400;
  page.events = [{ at_s: 0, label: 'warm', kind: 'step' }, { at_s: 28_800, label: 'day', kind: 'step' }, { at_s: 61_000, label: 'generator g7 lost', kind: 'lost' }];
}

/** Twenty machines, each watched, and a watched target. */
export function twentyMachines(page) {
  const names = Array.from({ length: 20 }, (_, idx) => `g${idx + 1}`);
  const { latency_us } = page.summary;
  const like = { kind: 'machine', makes: 'requests', load: null, machine: null, interrupted: 0, asked: 0, bytes_received: 9e6, bytes_sent: 1e5, connections_open_max: 4, phases_mean_us: null, failures: {}, points: page.series.points };
  page.parts = names.map((name, idx) => ({ ...like, name, at_s: 0, duration_s: page.summary.duration_s, status: idx === 6 ? 'SUSPECT' : 'VALID', problem: idx === 11 ? 'lost: connection closed' : null, ok: 1000 + idx, failed: idx, rate_per_s: 500 + idx, latency_us, busy: 0.3 + idx / 50 }));
  const seconds = Array.from({ length: Math.ceil(page.summary.duration_s) + 2 }, (_, second) => second);
  const monitor = (source, name, unit, level) => ({ source, name, unit, samples: seconds.map((second) => [second, level * (1 + 0.2 * Math.sin(second + level))]) });
  page.monitors = [...names.map((name, idx) => monitor(`generator ${name}`, 'cpu', 'percent', 20 + 3 * idx)), monitor('target 10.0.0.5', 'cpu', 'percent', 71), monitor('target 10.0.0.5', 'memory', 'bytes', 3e8), monitor('target 10.0.0.5', 'nginx rss', 'bytes', 4e7)];
}
