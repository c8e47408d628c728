// A load at levels: each figure against the level.

import { Chart, type Line, type Spec, type XAxis } from '../chart';
import type { LevelLine, SweepPage } from '../data';
import { h, section, table } from '../dom';
import * as format from '../format';
import { head, onTheme, times, TIMES, TONES } from '../parts';

export function showSweep(host: HTMLElement, page: SweepPage): void {
  const axis: XAxis = { label: page.level_name, log: true, text: (value) => format.short(Number(value.toPrecision(3))), head: page.level_name,
    splits: () => { const all = levels(page); const step = Math.ceil(all.length / 12); return all.filter((_, idx) => idx % step === 0 || idx === all.length - 1); } };
  const charts = specs(page).map((spec) => new Chart(spec, axis));
  const knees = page.lines.filter((line) => line.knee !== null);
  const unfit = page.lines.flatMap((line) => line.levels).filter((level) => level.status !== 'VALID');
  host.replaceChildren(
    head(page.title, `${levels(page).length} levels of ${page.level_name}`),
    h('div', { class: `verdict ${unfit.length > 0 ? 'suspect' : 'good'}`, role: 'status' },
      h('p', {}, h('strong', {}, knees.length > 0 ? knees.map((line) => `${page.lines.length > 1 ? `${line.name}: ` : ''}${line.knee!.words}`).join('; ') : 'no knee found: throughput still grows at the highest level, or there are too few levels')),
      unfit.length > 0 ? h('p', {}, `At ${unfit.length} of ${page.lines.flatMap((line) => line.levels).length} levels the generator may have affected the results; the table shows why.`) : null),
    section('Charts', h('div', { class: 'charts' }, charts.map((chart) => chart.element))),
    ...page.lines.map((line) => section(page.lines.length > 1 ? line.name : 'Levels', levelTable(page, line.levels))));
  onTheme(() => charts.forEach((chart) => chart.redraw()));
}

const levels = (page: SweepPage) => [...new Set(page.lines.flatMap((line) => line.levels.map((level) => level.level)))].sort((a, b) => a - b);

function specs(page: SweepPage): Spec[] {
  const x = levels(page);
  const isSingle = page.lines.length === 1;
  const line = (sweep: SweepPage['lines'][number], idx: number, name: string, value: (level: LevelLine) => number | null, more: Partial<Line> = {}): Line => {
    const at = new Map(sweep.levels.map((level) => [level.level, value(level)]));
    return { name: isSingle ? name : name ? `${sweep.name} ${name}` : sweep.name, values: x.map((level) => at.get(level) ?? null), color: `c${(idx % 8) + 1}`, ...more };
  };
  const each = (value: (level: LevelLine) => number | null, name = '') => page.lines.map((sweep, idx) => line(sweep, idx, name, value));
  const spread = page.lines.flatMap((sweep, idx) => [
    line(sweep, isSingle ? 0 : idx, 'p50', (level) => level.latency_us.p50, { width: 2.25 }),
    line(sweep, isSingle ? 2 : idx, 'p90', (level) => level.latency_us.p90, { dash: [6, 3], hidden: !isSingle }),
    line(sweep, isSingle ? 4 : idx, 'p99', (level) => level.latency_us.p99, { dash: [2, 3] })]);
  const all: Spec[] = [
    { title: 'Latency', note: 'Of successful requests.', unit: 'us', x, lines: spread, log: true },
    { title: 'Throughput', note: 'Successful requests per second.', unit: 'per_second', x, lines: each((level) => level.rate_per_s, 'requests') },
    { title: 'Bytes', note: 'Received per second.', unit: 'bytes_per_second', x, lines: each((level) => level.bytes_per_s, 'received') }];
  if (page.lines.some((sweep) => sweep.levels.some((level) => level.failed > 0))) {
    all.push({ title: 'Failures', note: 'Fraction of all completed requests.', unit: 'fraction', x, lines: each((level) => level.failed / Math.max(1, level.ok + level.failed), 'failed') });
  }
  for (const name of page.monitor_names) {
    const unit = name.startsWith('cpu') ? 'percent' : name.startsWith('memory') ? 'bytes' : 'count';
    all.push({ title: `Target: ${name}`, note: 'Mean over the measured time of each level.', unit, x, lines: each((level) => level.monitors[name] ?? null, name) });
  }
  return all;
}

function levelTable(page: SweepPage, list: LevelLine[]): HTMLElement {
  const rows = list.map((level) => [
    level.report ? h('a', { href: level.report }, format.short(level.level)) : format.short(level.level),
    h('span', { class: `tone ${TONES[level.status]}` }, level.status), level.reasons[0] ?? '',
    format.rate(level.rate_per_s), format.count(level.failed), ...times(level.latency_us), `${format.bytes(level.bytes_per_s)}/s`,
    ...page.monitor_names.map((name) => format.inUnit(level.monitors[name], name.startsWith('cpu') ? 'percent' : name.startsWith('memory') ? 'bytes' : 'count'))]);
  return table([page.level_name, 'verdict', 'why', 'rate', 'failed', ...TIMES, 'received', ...page.monitor_names], rows, 8 + page.monitor_names.length);
}
