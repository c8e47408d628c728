// The page of one run. The same for a saved run and for one under way: then `update` is called once a second.

import { Board, Chart, NINES, type Line, type Spec } from '../chart';
import { column, type Block, type Point, type RunPage, type ToolFigures, type Summary } from '../data';
import { fold, h, section, table } from '../dom';
import * as format from '../format';
import { drawHeat, heatRange } from '../heat';
import { head, moment, onTheme, thresholds, tile, times, TIMES, TONES } from '../parts';

export class RunView {
  private readonly top = h('div');
  private readonly lower = h('div');
  private readonly headHost = h('div');
  private readonly board: Board;
  private readonly charts = new Map<string, Chart>();
  private readonly overTime = h('div', { class: 'charts' });
  private readonly zeros = h('p', { class: 'note' });
  private curve: Chart | undefined;
  private readonly curveHost = h('div', { class: 'charts' });

  constructor(host: HTMLElement, private page: RunPage, tools: Node[] = []) {
    this.board = new Board(endOf(page), marksOf(page));
    this.headHost.append(head(page.summary.name, subtitle(page.summary), ...tools));
    host.replaceChildren(this.headHost, this.top, section('Over time', this.zoomBar(), this.overTime, this.zeros), ...(isByTools(page) ? [] : [section('Percentiles', this.curveHost)]), this.lower, details(page));
    this.draw();
    onTheme(() => { this.board.redraw(); this.curve?.redraw(); });
  }

  update(page: RunPage): void {
    this.page = page;
    this.board.end_s = endOf(page);
    this.board.marks = marksOf(page);
    this.headHost.querySelector('p')!.textContent = subtitle(page.summary);
    this.draw();
  }

  private draw(): void {
    const { page } = this;
    this.top.replaceChildren(...topBlocks(page));
    const watched = monitorSpecs(page);
    for (const spec of [...specs(page), ...watched.filter((spec) => !isZero(spec))]) {
      const chart = this.charts.get(spec.title);
      if (chart) chart.update(spec);
      else {
        const added = this.board.add(spec);
        this.charts.set(spec.title, added);
        this.overTime.append(added.element);
      }
    }
    this.zeros.textContent = zeroNote(watched.filter(isZero));
    const curves = curveSpec(page);
    if (this.curve) this.curve.update(curves);
    else {
      this.curve = new Chart(curves, NINES);
      this.curve.element.classList.add('wide');
      this.curveHost.append(this.curve.element);
    }
    this.lower.replaceChildren(...lowerBlocks(page));
  }

  private zoomBar(): HTMLElement {
    const text = h('span');
    const bar = h('div', { class: 'zoombar', hidden: true }, text, h('button', { type: 'button', class: 'small', id: 'zoom-reset', click: () => this.board.zoom(null) }, 'Show the whole run'));
    this.board.onZoom = (range) => {
      bar.hidden = range === null;
      if (range) text.textContent = `Showing ${format.clock(range[0], 0.1)} to ${format.clock(range[1], 0.1)} in every chart over time`;
    };
    return bar;
  }
}

function subtitle(summary: Summary): string {
  const where = [summary.environment['host'], summary.environment['os']].filter(Boolean).join(', ');
  return `${moment(summary.started_at)} · ${format.span(summary.duration_s)}${where ? ` · from ${where}` : ''} · squall ${summary.squall}`;
}

const ENDED: Record<string, string> = { drained: 'stopped early, open requests finished', aborted: 'stopped early, open requests cut off', unreachable: 'target unreachable' };

const VERDICTS = { VALID: 'The generator was fit to measure this', SUSPECT: 'The generator may be part of what was measured', INVALID: 'The generator is what was measured: do not use these figures' };

/** What foreign tools alone made: squall has no figures of its own, and judges none. */
const isByTools = ({ summary, tools }: RunPage) => tools.length > 0 && summary.plan.loads.length === 0;

function topBlocks(page: RunPage): HTMLElement[] {
  const { summary, asked_per_s: asked, rule_labels, blocks, tools } = page;
  const { verdict, totals, latency_us: latency, generator } = summary;
  const missed = summary.thresholds.filter((one) => !one.ok).length;
  const isUnreachable = summary.stopped_by === 'unreachable';
  const isUnjudged = isByTools(page) && verdict.status === 'VALID';
  const tone = isUnreachable || missed > 0 ? 'bad' : isUnjudged ? 'plain' : TONES[verdict.status];
  const rules = judged(summary.thresholds.length, missed);
  const ended = ENDED[summary.stopped_by];
  const findings = [...verdict.reasons, ...verdict.notes];
  const settled = totals.ok + totals.failed;
  return [
    h('div', { class: `verdict ${tone}`, role: 'status' },
      h('p', {}, h('strong', {}, `${isUnreachable ? 'UNREACHABLE' : isUnjudged ? 'NOT JUDGED' : verdict.status}${rules}`)),
      h('p', {}, isUnreachable ? 'No connection to the target could be opened.' : `${isUnjudged ? 'The figures are the tools’ own: squall measured none of them' : VERDICTS[verdict.status]}${ended ? `; ${ended}` : ''}.`),
      findings.length > 0 ? h('ul', {}, findings.map((reason) => h('li', {}, reason.message, ' ', h('span', { class: 'muted' }, `— ${reason.help}`)))) : null),
    isByTools(page) ? h('div', { class: 'tiles' }, tools.map((run) => tile(`${run.load}: ${run.tool}`, run.figures.requests === null ? '–' : format.count(run.figures.requests), run.figures.rate_per_s === null ? 'requests' : `requests, ${format.rate(run.figures.rate_per_s)}`))) : h('div', { class: 'tiles' },
      tile('requests per second', format.rate(totals.rate_per_s), asked === null ? '' : `asked ${format.rate(asked)}`),
      tile('ended well', format.count(totals.ok), totals.interrupted > 0 ? `${format.count(totals.interrupted)} interrupted` : ''),
      tile('failed', format.count(totals.failed), settled > 0 ? format.percent(totals.failed / settled) : ''),
      tile('median latency', format.time(latency.p50), asked === null ? 'from sending' : 'from the intended start'),
      tile('99th percentile', format.time(latency.p99), `p99.9 ${format.time(latency.p99_9)}`),
      tile('slowest', format.time(latency.max), `of ${format.short(latency.count)}`),
      // What a script's users went through says more than its bytes, which are charted below.
      totals.iterations === undefined ? tile('received', format.bytes(totals.bytes_received), `sent ${format.bytes(totals.bytes_sent)}`) : tile('iterations', format.count(totals.iterations), totals.iterations_dropped ? `${format.count(totals.iterations_dropped)} dropped` : 'of the script'),
      tile('generator busy', format.percent(generator.busy), generator.cpu_us_per_request === null ? '' : `${format.time(generator.cpu_us_per_request)} CPU per request`)),
    ...(summary.thresholds.length > 0 ? [section('Thresholds', thresholds(summary.thresholds, rule_labels))] : []),
    ...blocks.filter((block) => block.is_headline).map(kindBlock),
  ];
}

function judged(count: number, missed: number): string {
  if (missed > 0) return `, ${missed} of ${count} thresholds missed`;
  return count === 0 ? '' : count === 1 ? ', threshold met' : `, all ${count} thresholds met`;
}

/** What tools alone made has no series, but may be watched. */
const endOf = ({ series, summary, warmup_s }: RunPage) => Math.max(warmup_s + summary.duration_s, ...column(series, 'at_s').map((at, idx) => (at ?? 0) + (series.points[idx]!.v[1] ?? 0)));

function marksOf({ series, warmup_s, events }: RunPage): { warmup_s: number; events: RunPage['events']; impaired: [number, number][] } {
  const impaired = series.points.filter((point) => point.w).map((point): [number, number] => [point.v[0] ?? 0, (point.v[0] ?? 0) + (point.v[1] ?? 0)]);
  return { warmup_s, events, impaired };
}

/** Without remnants of seconds, whose figures would be chance; where nothing was done for a while, as between steps, one point without any figure. */
function wholePoints({ columns, points }: RunPage['series']): Point[] {
  const made: Point[] = [];
  let isGap = false;
  for (const point of points) {
    if ((point.v[1] ?? 0) < 0.2) {
      isGap = true;
      continue;
    }
    const before = made[made.length - 1];
    if (isGap && before) {
      const at_s = (before.v[0]! + before.v[1]! + point.v[0]!) / 2;
      made.push({ v: columns.map((name) => (name === 'at_s' ? at_s : name === 'span_s' ? 0 : null)), h: [] });
    }
    made.push(point);
    isGap = false;
  }
  return made;
}

/** Every chart over time for which there are figures. */
function specs(page: RunPage): Spec[] {
  if (isByTools(page)) return [];
  const whole = wholePoints(page.series);
  const series = { columns: page.series.columns, points: whole.length > 0 ? whole : page.series.points };
  const spans = column(series, 'span_s').map((value) => value ?? 0);
  const starts = column(series, 'at_s').map((value) => value ?? 0);
  const x = starts.map((start, idx) => start + spans[idx]! / 2);
  const values = (name: string) => column(series, name);
  // What the warm-up did is in no figure, so its rate is not zero but unknown.
  const perSecond = (name: string) => values(name).map((value, idx) => (value === null || spans[idx]! <= 0 || starts[idx]! + spans[idx]! <= page.warmup_s ? null : value / spans[idx]!));
  const has = (list: Line['values']) => list.some((value) => value != null && value > 0);
  const line = (name: string, list: (number | null)[], color: string, more: Partial<Line> = {}): Line => ({ name, values: list, color, ...more });
  const known = (lines: Line[]) => lines.filter((one) => has(one.values));

  const specs: Spec[] = [];
  const rates = known([line('asked', perSecond('asked'), 'c7', { dash: [6, 4] }), line('sent', perSecond('started'), 'c6'), line('done well', perSecond('ok'), 'c1', { width: 2.25 }), line('failed', perSecond('failed'), 'c2', { dash: [2, 3] })]);
  specs.push({ title: 'Rate', note: 'Requests per second: asked by the schedule, sent, and ended.', unit: 'per_second', x, lines: rates });

  const bands = [line('p50', values('p50'), 'c1', { width: 2.25 }), line('p90', values('p90'), 'c3'), line('p99', values('p99'), 'c5'), line('p99.9', values('p99_9'), 'c2'), line('max', values('max'), 'c7', { dash: [3, 3] })];
  specs.push({ title: 'Latency', note: 'Percentiles of the requests that ended well in each span.', unit: 'us', x, lines: bands, log: true, bands: [[1, 0, 0.16], [2, 1, 0.12], [3, 2, 0.08]] });

  const range = heatRange(series.points);
  if (range) {
    const ranges = starts.map((start, idx): [number, number] => [start, start + spans[idx]!]);
    specs.push({ title: 'Heat map', note: 'How many requests took how long: the darker, the more (in light mode). Two groups of latencies show as two stripes.', unit: 'us', x,
      lines: [line('median', values('p50'), 'c2', { width: 1.25 }), line('p99', values('p99'), 'c5', { width: 1.25, dash: [4, 3] })], log: true, yRange: range, under: (plot) => drawHeat(plot, series.points, ranges) });
  }

  const phases = known([line('waiting for a connection', values('blocked'), 'c7'), line('connecting', values('connecting'), 'c3'), line('TLS handshake', values('tls'), 'c8'), line('sending', values('sending'), 'c5'), line('waiting for the answer', values('wait'), 'c1'), line('receiving', values('receiving'), 'c4')]);
  if (phases.length > 0) specs.push({ title: 'Phases', note: 'Where the mean time of a successful request goes.', unit: 'us', x, lines: phases, stacked: true });

  const causes = [...new Set(series.points.flatMap((point) => Object.keys(point.e ?? {})))].sort();
  if (causes.length > 0) {
    const colors = ['c2', 'c4', 'c5', 'c8', 'c7', 'c1', 'c3'];
    const lines = causes.map((cause, idx) => line(page.cause_labels[cause] ?? cause.replaceAll('_', ' '), series.points.map((point, at) => (spans[at]! > 0 ? (point.e?.[cause] ?? 0) / spans[at]! : null)), colors[idx % colors.length]!));
    specs.push({ title: 'Failures', note: 'Per second, by cause.', unit: 'per_second', x, lines, stacked: true });
  }

  const network = known([line('received', perSecond('in'), 'c1'), line('sent', perSecond('out'), 'c2')]);
  if (network.length > 0) specs.push({ title: 'Network', note: 'Bytes per second on the wire, TLS included.', unit: 'bytes_per_second', x, lines: network });
  const connections = known([line('open', values('open'), 'c1'), line('opened', values('opened'), 'c3', { dash: [6, 4] }), line('requests waiting for one', values('waiting'), 'c2')]);
  if (connections.length > 0) specs.push({ title: 'Connections', note: 'Open at the end of each span, and opened in it.', unit: 'count', x, lines: connections });
  const generator = known([line('busiest loop', values('busy'), 'c1'), line('its machine’s CPUs', values('cpu'), 'c3'), line('kept off its core', values('descheduled'), 'c2')]);
  if (generator.length > 0) specs.push({ title: 'Generator', note: 'Share of its time; near 100 % latencies contain the generator’s own queue.', unit: 'fraction', x, lines: generator, yMax: 1 });
  const lag = known([line('p99 of the lag', values('lag_p99'), 'c2')]);
  if (lag.length > 0) specs.push({ title: 'Schedule lag', note: 'How late requests were sent although a connection was free.', unit: 'us', x, lines: lag });
  return specs;
}

const MONITOR_TITLES: Record<string, string> = { percent: 'Watched: CPU and other shares', bytes: 'Watched: memory and sizes', count: 'Watched: counts', per_second: 'Watched: rates', seconds: 'Watched: times' };

/** One chart for each unit and group of sources: twenty lines in one are a tangle. */
function monitorSpecs({ monitors }: RunPage): Spec[] {
  const groups = new Map<string, RunPage['monitors']>();
  for (const monitor of monitors) {
    const key = `${monitor.unit}\n${monitor.source.split(' ')[0]}\n${monitor.unit === 'percent' ? '' : monitor.name}`;
    groups.set(key, [...(groups.get(key) ?? []), monitor]);
  }
  return [...groups].map(([key, members]) => {
    // Sources are sampled each at its own moment of a second: on a common one, a chart's lines can be read beside each other.
    const samples = members.map((one) => new Map(one.samples.map(([at, value]) => [Math.floor(at) + 0.5, value])));
    const x = [...new Set(samples.flatMap((one) => [...one.keys()]))].sort((a, b) => a - b);
    const [unit, who, what] = key.split('\n') as [string, string, string];
    const lines = members.map((one, idx): Line => (
      { name: what ? one.source : `${one.source} ${one.name}`, values: withGaps(x, samples[idx]!), color: `c${(idx % 8) + 1}`, ...(idx >= 8 ? { dash: [5, 3] } : {}) }
    ));
    return { title: what ? `${capital(who)}: ${what}` : `${capital(who)}: ${MONITOR_TITLES[unit]?.replace('Watched: ', '') ?? unit}`, unit, x, lines, note: 'Watched beside the load, on the same clock.' };
  });
}

/** A source that missed a sample is drawn through (`undefined`); one that was silent for longer has a gap (`null`). */
function withGaps(x: number[], samples: Map<number, number>): Line['values'] {
  const own = [...samples.keys()].sort((a, b) => a - b);
  const silence = (3 * (own[own.length - 1]! - own[0]!)) / Math.max(1, own.length - 1);
  let next = 0;
  return x.map((time) => {
    while (next < own.length && own[next]! < time) next += 1;
    const isMissed = next > 0 && next < own.length && own[next]! - own[next - 1]! <= silence;
    return samples.get(time) ?? (isMissed ? undefined : null);
  });
}

const isZero = (spec: Spec) => spec.lines.every((line) => line.values.every((value) => !value));

/** Watched counts that never were anything but zero take one line instead of a chart each. */
function zeroNote(zeros: Spec[]): string {
  return zeros.length > 0 ? `Watched, and zero all the time: ${zeros.map((spec) => spec.title).join(', ')}.` : '';
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

function curveSpec({ curves }: RunPage): Spec {
  const x = [...new Set(curves.flatMap((curve) => curve.points.map(([nines]) => nines)))].sort((a, b) => a - b);
  const lines = curves.map((curve, idx): Line => {
    const at = new Map(curve.points);
    return { name: curve.name, values: x.map((nines) => at.get(nines) ?? null), color: `c${(idx % 8) + 1}`, width: idx === 0 ? 2.5 : 1.5, ...(idx > 0 ? { dash: [5, 3] } : {}), hidden: curve.name === 'failures' };
  });
  return { title: 'Latency by percentile', note: 'The whole run, warm-up left out. A step upwards is where a share of the requests takes another way.', unit: 'us', x: x.length > 0 ? x : [0], lines: lines.length > 0 ? lines : [{ name: 'latency', values: [null], color: 'c1' }], log: true };
}

/** Facts alone are lines; everything else is a table. */
function kindBlock({ title, head, rows, figure_count }: Block): HTMLElement {
  const isList = head.length === 1;
  return section(title, isList ? h('ul', { class: 'facts' }, rows.map(([fact]) => h('li', {}, fact))) : table(head, rows, figure_count));
}

/** Whatever a tool printed, in one order. */
function printed({ requests, failed, rate_per_s, latency_us }: ToolFigures): string {
  const known = [requests === null ? '' : `${format.count(requests)} requests`, failed ? `${format.count(failed)} failed` : '', rate_per_s === null ? '' : format.rate(rate_per_s)];
  const times = Object.entries(latency_us).map(([name, us]) => `${name} ${format.time(us)}`);
  return [...known, ...times].filter(Boolean).join(' · ') || 'nothing that could be read';
}

function lowerBlocks({ summary, error_labels, parts, blocks: kinds, tools }: RunPage): HTMLElement[] {
  const blocks: HTMLElement[] = [];
  if (summary.errors.length > 0) {
    const rows = summary.errors.map((error, idx) => [error_labels[idx] ?? error.cause, h('span', {}, error.example ?? '', error.example_url ? h('span', { class: 'muted' }, ` (${error.example_url})`) : null), error.first_at_s === null ? '–' : format.clock(error.first_at_s, 0.1), format.count(error.count)]);
    blocks.push(section('Failures', table(['what', 'the first one', 'first at', 'count'], rows, 2)));
  }
  blocks.push(...kinds.filter((block) => !block.is_headline).map(kindBlock));
  for (const [kind, title] of [['run', 'Runs'], ['machine', 'Machines'], ['step', 'Steps'], ['load', 'Loads']] as const) {
    const members = parts.filter((part) => part.kind === kind);
    if (members.length === 0) continue;
    const rows = members.map((part) => [part.name, h('span', { class: `tone ${part.problem ? 'bad' : TONES[part.status]}` }, part.problem ?? part.status), format.clock(part.at_s), format.span(part.duration_s), format.count(part.ok), format.count(part.failed), format.rate(part.rate_per_s), ...times(part.latency_us), format.percent(part.busy)]);
    blocks.push(section(title, table([kind, 'verdict', 'from', 'for', 'ok', 'failed', 'rate', ...TIMES, 'busy'], rows, 11)));
  }
  if (tools.length > 0) {
    blocks.push(section('Other tools', h('p', { class: 'note' }, 'Their own figures, as they printed them; they are in no total.'), table(['tool', 'load', 'machine', 'printed'], tools.map((tool) => [tool.tool, tool.load, tool.machine, h('span', {}, printed(tool.figures), tool.problem ? h('span', { class: 'tone bad' }, ` ${tool.problem}`) : null)]), 0)));
  }
  blocks.push(section('Requests', requests(summary)));
  const phases = Object.entries(summary.phases_us).filter(([, one]) => one.count > 0).map(([name, one]) => [name.replaceAll('_', ' '), ...times(one), format.count(one.count)]);
  if (phases.length > 0) blocks.push(section('Phases', table(['phase', ...TIMES, 'count'], phases)));
  return blocks;
}

/** Rows may be grouped by anything that tells them apart. */
function requests(summary: Summary): HTMLElement {
  const host = h('div');
  const keys = ['url', 'method', 'protocol', 'load'] as const;
  const rows = summary.rows.filter((row) => row.ok + row.failed + row.interrupted > 0);
  const byRow = () => table(['method', 'URL', 'protocol', 'load', 'ok', 'failed', 'rate', ...TIMES], rows.map((row) => [row.method, h('span', { class: 'wrap' }, row.url), row.protocol, row.load, format.count(row.ok), format.count(row.failed), format.rate(summary.duration_s > 0 ? (row.ok + row.failed) / summary.duration_s : 0), ...times(row.latency_us)]), 8);
  const byKey = (key: (typeof keys)[number]) => {
    const groups = new Map<string, { ok: number; failed: number; received: number }>();
    for (const row of rows) {
      const sum = groups.get(row[key]) ?? { ok: 0, failed: 0, received: 0 };
      groups.set(row[key], { ok: sum.ok + row.ok, failed: sum.failed + row.failed, received: sum.received + row.bytes_received });
    }
    return table([key, 'ok', 'failed', 'received'], [...groups].map(([name, sum]) => [name, format.count(sum.ok), format.count(sum.failed), format.bytes(sum.received)]), 3);
  };
  const byStatus = () => table(['status', 'responses', 'share'], Object.entries(summary.status).map(([status, number]) => [status, format.count(number), format.percent(number / Math.max(1, Object.values(summary.status).reduce((a, b) => a + b, 0)))]), 2);
  const views: [string, () => HTMLElement][] = [['each', byRow], ...keys.filter((key) => new Set(rows.map((row) => row[key])).size > 1).map((key): [string, () => HTMLElement] => [`by ${key === 'url' ? 'URL' : key}`, () => byKey(key)]), ['by status', byStatus]];
  const buttons = views.map(([name, draw], idx) => h('button', { type: 'button', class: 'small', 'aria-pressed': String(idx === 0), click: (event) => {
    buttons.forEach((button) => button.setAttribute('aria-pressed', String(button === event.currentTarget)));
    host.replaceChildren(draw());
  } }, name));
  host.append(rows.length > 0 ? byRow() : h('p', { class: 'note' }, 'No request ended.'));
  return h('div', {}, h('div', { class: 'filters' }, buttons), host);
}

function details({ summary }: RunPage): HTMLElement {
  const facts = Object.entries(summary.environment).map(([name, value]) => [name.replaceAll('_', ' '), value]);
  return section('What was run', fold('plan, as it was run', () => h('pre', {}, JSON.stringify(summary.plan, null, 2))), fold('environment', () => table(['fact', ''], facts, 0)));
}
