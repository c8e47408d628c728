// The page of one run. The same for a saved run and for one under way: then `update` is called once a second.

import { Board, Chart, NINES, type Band, type Line, type Spec } from '../chart';
import { column, type Block, type KindTotals, type Part, type Row, type RunPage, type ToolFigures, type Summary } from '../data';
import { fold, h, section, table } from '../dom';
import * as format from '../format';
import { head, moment, onTheme, thresholds, times, TIMES, TONES } from '../parts';
import { capital, wordsOf } from '../words';
import { keyOf, partSections, stepsTable, verdictOf, type PartSection } from './parts';
import { seriesSpecs, type Scope } from './series';
import { tiles } from './tiles';

export class RunView {
  private readonly top = h('div');
  private readonly lower = h('div');
  private readonly headHost = h('div');
  private readonly board: Board;
  private readonly charts = new Map<string, Chart>();
  private readonly overTime = h('div', { class: 'charts' });
  private readonly zeros = h('p', { class: 'note' });
  private readonly chooser = h('select', { id: 'scope', change: () => this.choose(this.chooser.value) });
  private readonly chooserLine = h('label', { class: 'scope', hidden: true }, 'Show ', this.chooser);
  private readonly parts: PartSection[];
  /** The key of the part whose series is drawn; empty for the whole run. */
  private chosen = '';
  private curve: Chart | undefined;
  private readonly curveHost = h('div', { class: 'charts' });

  constructor(host: HTMLElement, private page: RunPage, tools: Node[] = []) {
    this.board = new Board(endOf(page), marksOf(page));
    this.parts = partSections(this.board, (key) => { this.choose(key); this.overTime.scrollIntoView({ behavior: 'smooth' }); });
    this.headHost.append(head(page.summary.name, subtitle(page.summary), ...tools));
    const overTime = section('Over time', this.chooserLine, this.zoomBar(), this.overTime, this.zeros);
    host.replaceChildren(this.headHost, this.top, overTime, ...this.parts.map((part) => part.element), ...(isByTools(page) ? [] : [section('Percentiles', this.curveHost)]), this.lower, details(page));
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
    this.fillChooser();
    this.drawOverTime();
    this.parts.forEach((part) => part.draw(page));
    const curves = curveSpec(page);
    if (this.curve) this.curve.update(curves);
    else {
      this.curve = new Chart(curves, NINES);
      this.curve.element.classList.add('wide');
      this.curveHost.append(this.curve.element);
    }
    this.lower.replaceChildren(...lowerBlocks(page));
  }

  private drawOverTime(): void {
    const watched = monitorSpecs(this.page);
    for (const spec of [...specs(this.page, this.chosen), ...watched.filter((spec) => !isZero(spec))]) {
      const chart = this.charts.get(spec.title);
      if (chart) chart.update(spec);
      else {
        const added = this.board.add(spec);
        this.charts.set(spec.title, added);
        this.overTime.append(added.element);
      }
    }
    this.zeros.textContent = [isUndivided(this.page) ? 'This run was saved without a time series for each kind of load. Rates and latencies of different kinds cannot be added up, so no charts are drawn.' : '', zeroNote(watched.filter(isZero))].join(' ');
  }

  /** The parts that have a series of their own, by kind. */
  private fillChooser(): void {
    const drawn = this.page.parts.filter((part) => part.points.length > 0);
    const groups = ([['load', 'A load'], ['machine', 'A machine'], ['share', 'One load on one machine']] as const).map(([kind, title]): [string, Part[]] => [title, drawn.filter((part) => part.kind === kind)]).filter(([, own]) => own.length > 1);
    const keys = groups.flatMap(([, own]) => own.map(keyOf)).join();
    if (this.chooser.dataset['keys'] === keys) return;
    this.chooser.dataset['keys'] = keys;
    const option = (value: string, name: string) => h('option', { value }, name);
    this.chooser.replaceChildren(option('', 'the whole run'), ...groups.map(([title, own]) => h('optgroup', { label: title }, own.map((part) => option(keyOf(part), nameOf(part, own))))));
    this.chooser.value = this.chosen;
    this.chooserLine.hidden = groups.length === 0;
  }

  /** Draws the series of another part. */
  private choose(key: string): void {
    this.chosen = this.chooser.value = key;
    this.board.remove([...this.charts.values()]);
    this.charts.clear();
    this.overTime.replaceChildren();
    this.drawOverTime();
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

const VERDICTS = { VALID: 'The generator kept up: these results describe the target', SUSPECT: 'The generator may have added delays: trust counts and comparisons within this run, but not absolute latencies and rates', INVALID: 'The generator was the bottleneck: do not use these results' };

/** Where machines were lost or tools failed the generator itself may have kept up: then load is missing. */
function meaning({ status, reasons }: Summary['verdict']): string {
  const grave = reasons.filter((one) => one.severity === status);
  const isMissing = grave.length > 0 && grave.every((one) => one.kind === 'machines_lost' || one.kind === 'tools_failed');
  if (!isMissing) return VERDICTS[status];
  return status === 'INVALID' ? 'The load was not generated: do not use these results' : 'Less load than planned was generated: compare only what was sent';
}

/** What foreign tools alone made: squall has no figures of its own, and judges none. */
const isByTools = ({ summary, tools }: RunPage) => tools.length > 0 && summary.plan.loads.length === 0;

function topBlocks(page: RunPage): HTMLElement[] {
  const { summary, rule_labels, blocks } = page;
  const { verdict } = summary;
  const missed = summary.thresholds.filter((one) => !one.ok).length;
  const isUnreachable = summary.stopped_by === 'unreachable';
  const isUnjudged = isByTools(page) && verdict.status === 'VALID';
  const tone = isUnreachable || missed > 0 ? 'bad' : isUnjudged ? 'plain' : TONES[verdict.status];
  const rules = judged(summary.thresholds.length, missed);
  const ended = ENDED[summary.stopped_by];
  const findings = [...verdict.reasons, ...verdict.notes];
  const steps = stepsTable(page);
  return [
    h('div', { class: `verdict ${tone}`, role: 'status' },
      h('p', {}, h('strong', {}, `${isUnreachable ? 'UNREACHABLE' : isUnjudged ? 'NOT JUDGED' : verdict.status}${rules}`)),
      h('p', {}, isUnreachable ? 'No connection to the target could be opened.' : `${isUnjudged ? 'The results come from other tools; squall measured nothing itself' : meaning(verdict)}${ended ? `; ${ended}` : ''}.`),
      findings.length > 0 ? h('ul', {}, findings.map((reason) => h('li', {}, reason.message, ' ', h('span', { class: 'muted' }, `— ${reason.help}`)))) : null),
    ...(steps ? [section('Steps', steps)] : []),
    ...tiles(page),
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

function marksOf(page: RunPage): { warmup_s: number; bands: Band[]; events: RunPage['events']; impaired: [number, number][] } {
  const { series, warmup_s, events } = page;
  const impaired = series.points.filter((point) => point.w).map((point): [number, number] => [point.v[0] ?? 0, (point.v[0] ?? 0) + (point.v[1] ?? 0)]);
  return { warmup_s, bands: bandsOf(page), events: events.filter((event) => event.kind !== 'step'), impaired };
}

/** Steps, or the runs of a page of several. A step ends with the last of its loads, at the latest when the next one begins. */
function bandsOf(page: RunPage): Band[] {
  const { parts, events } = page;
  const steps = parts.filter((part) => part.kind === 'step' || part.kind === 'run');
  const marked = events.filter((event) => event.kind === 'step').map((event) => ({ name: event.label, at_s: event.at_s, duration_s: 0 }));
  const begun = (steps.length >= marked.length ? steps : marked).slice().sort((a, b) => a.at_s - b.at_s);
  if (begun.length < 2) return [];
  return begun.map((step, idx) => {
    const next_s = begun[idx + 1]?.at_s ?? Infinity;
    const ends = parts.filter((part) => part.kind === 'load' && part.at_s >= step.at_s && part.at_s < next_s).map((part) => Math.max(part.at_s + part.duration_s, ...part.points.slice(-1).map((point) => point.v[0]! + point.v[1]!)));
    const until_s = Math.max(step.at_s + step.duration_s, ...ends);
    return { from_s: step.at_s, to_s: Math.min(next_s, until_s > step.at_s ? until_s : next_s === Infinity ? endOf(page) : next_s), label: step.name };
  });
}

/** Every chart over time for which there are figures, of the whole run or of one part. */
function specs(page: RunPage, chosen: string): Spec[] {
  if (isByTools(page)) return [];
  const { series, warmup_s, cause_labels: causes, summary: { totals: { kinds } } } = page;
  const scope = (more: Partial<Scope>): Scope => ({ series, kind: kinds[0]?.kind ?? 'requests', prefix: '', warmup_s, causes, ...more });
  const part = page.parts.find((part) => keyOf(part) === chosen);
  const of = (part: Part, prefix: string) => scope({ series: { columns: series.columns, points: part.points }, kind: part.makes, prefix });
  if (part) return seriesSpecs(of(part, part.name));
  if (kinds.length < 2) return seriesSpecs(scope({}));
  // What all of them share is drawn once, and no rate and no latency of different things together.
  const own = page.parts.filter((part) => part.kind === 'kind' && part.points.length > 0);
  const shared = seriesSpecs(scope({ kind: null })).filter((spec) => own.length === 0 || spec.title !== 'Failures');
  return [...own.flatMap((part) => seriesSpecs(of(part, wordsOf(part.makes).title)).filter((spec) => !LEFT_OUT.test(spec.title))), ...shared];
}

/** Of older versions: several kinds of load, and only one series. */
const isUndivided = ({ parts, summary }: RunPage) => summary.totals.kinds.length > 1 && !parts.some((part) => part.kind === 'kind' && part.points.length > 0);

/** Of the generator and its network, whatever was made; and heat maps, which each load has when it is chosen. */
const LEFT_OUT = /: (network|connections|congestion window|round-trip time|packets lost|generator|schedule lag|heat map)$/;

/** Two parts of one name make different things. */
function nameOf(part: Part, all: Part[]): string {
  return part.makes && all.some((other) => other !== part && other.name === part.name) ? `${part.name}: ${wordsOf(part.makes).many}` : part.name;
}

const MONITOR_TITLES: Record<string, string> = { percent: 'Monitored: CPU and other shares', bytes: 'Monitored: memory and sizes', count: 'Monitored: counts', per_second: 'Monitored: rates', seconds: 'Monitored: times' };

/** One chart for each unit and group of sources: twenty lines in one are a tangle. */
function monitorSpecs({ monitors }: RunPage): Spec[] {
  const groups = new Map<string, RunPage['monitors']>();
  for (const monitor of monitors) {
    const key = `${monitor.unit}\n${monitor.source.split(' ')[0]}\n${monitor.unit === 'percent' ? '' : monitor.name}`;
    groups.set(key, [...(groups.get(key) ?? []), monitor]);
  }
  return [...groups].map(([key, members]) => {
    // Sources are sampled each at its own moment of a second: on a common one, a chart's lines can be compared.
    const samples = members.map((one) => new Map(one.samples.map(([at, value]) => [Math.floor(at) + 0.5, value])));
    const x = [...new Set(samples.flatMap((one) => [...one.keys()]))].sort((a, b) => a - b);
    const [unit, who, what] = key.split('\n') as [string, string, string];
    const lines = members.map((one, idx): Line => (
      { name: what ? one.source : `${one.source} ${one.name}`, values: withGaps(x, samples[idx]!), color: `c${(idx % 8) + 1}`, ...(idx >= 8 ? { dash: [5, 3] } : {}) }
    ));
    return { title: what ? `${capital(who)}: ${what}` : `${capital(who)}: ${MONITOR_TITLES[unit]?.replace('Monitored: ', '') ?? unit}`, unit, x, lines, note: 'Monitored while the load ran, on the same clock.' };
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
  return zeros.length > 0 ? `Monitored, and always zero: ${zeros.map((spec) => spec.title).join(', ')}.` : '';
}

function curveSpec({ curves }: RunPage): Spec {
  const x = [...new Set(curves.flatMap((curve) => curve.points.map(([nines]) => nines)))].sort((a, b) => a - b);
  const lines = curves.map((curve, idx): Line => {
    const at = new Map(curve.points);
    return { name: curve.name, values: x.map((nines) => at.get(nines) ?? null), color: `c${(idx % 8) + 1}`, width: idx === 0 ? 2.5 : 1.5, ...(idx > 0 ? { dash: [5, 3] } : {}), hidden: curve.name === 'failures' };
  });
  return { title: 'Latency by percentile', note: 'The whole run without warm-up. A step means that a part of the requests takes a slower path.', unit: 'us', x: x.length > 0 ? x : [0], lines: lines.length > 0 ? lines : [{ name: 'latency', values: [null], color: 'c1' }], log: true };
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
  return [...known, ...times].filter(Boolean).join(' · ') || 'no readable output';
}

function lowerBlocks(page: RunPage): HTMLElement[] {
  const { summary, error_labels, parts, blocks: ownBlocks, tools } = page;
  const blocks: HTMLElement[] = [];
  if (summary.errors.length > 0) {
    const rows = summary.errors.map((error, idx) => [error_labels[idx] ?? error.cause, h('span', {}, error.example ?? '', error.example_url ? h('span', { class: 'muted' }, ` (${error.example_url})`) : null), error.first_at_s === null ? '–' : format.clock(error.first_at_s, 0.1), format.count(error.count)]);
    blocks.push(section('Failures', table(['what', 'the first one', 'first at', 'count'], rows, 2)));
  }
  blocks.push(...ownBlocks.filter((block) => !block.is_headline).map(kindBlock));
  const runs = parts.filter((part) => part.kind === 'run');
  if (runs.length > 0) {
    const rows = runs.map((part) => [part.name, verdictOf(part), format.clock(part.at_s), format.span(part.duration_s), format.count(part.ok), format.count(part.failed), format.rate(part.rate_per_s), ...times(part.latency_us), format.percent(part.busy)]);
    blocks.push(section('Runs', table(['run', 'verdict', 'from', 'for', 'ok', 'failed', 'rate', ...TIMES, 'busy'], rows, 11)));
  }
  if (tools.length > 0) {
    blocks.push(section('Other tools', h('p', { class: 'note' }, 'Results as printed by the tools; not included in any total.'), table(['tool', 'load', 'machine', 'printed'], tools.map((tool) => [tool.tool, tool.load, tool.machine, h('span', {}, printed(tool.figures), tool.problem ? h('span', { class: 'tone bad' }, ` ${tool.problem}`) : null)]), 0)));
  }
  const { kinds } = summary.totals;
  const isMixed = kinds.length > 1;
  if (!isByTools(page)) blocks.push(...(isMixed ? kinds.map((kind) => section(wordsOf(kind.kind).title, requests(summary, kind))) : [section(wordsOf(kinds[0]?.kind).title, requests(summary))]));
  const phases = isMixed ? [] : Object.entries(summary.phases_us).filter(([, one]) => one.count > 0).map(([name, one]) => [name.replaceAll('_', ' '), ...times(one), format.count(one.count)]);
  if (phases.length > 0) blocks.push(section('Phases', table(['phase', ...TIMES, 'count'], phases)));
  return blocks;
}

/** Rows may be grouped by anything that tells them apart. */
function requests(summary: Summary, kind?: KindTotals): HTMLElement {
  const host = h('div');
  const keys = ['url', 'method', 'protocol', 'load'] as const;
  const isOwn = (row: Row) => !kind || kind.loads.some((load) => row.load === load || row.load.endsWith(`: ${load}`));
  const rows = summary.rows.filter((row) => row.ok + row.failed + row.interrupted > 0 && isOwn(row));
  const own_s = (row: Row) => summary.parts.find((part) => part.kind === 'load' && part.name === row.load)?.duration_s ?? summary.duration_s;
  const rowRate = (row: Row) => (own_s(row) > 0 ? (row.ok + row.failed) / own_s(row) : 0);
  const byRow = () => table(['method', 'URL', 'protocol', 'load', 'ok', 'failed', 'rate', ...TIMES], rows.map((row) => [row.method, h('span', { class: 'wrap' }, row.url), row.protocol, row.load, format.count(row.ok), format.count(row.failed), format.rate(rowRate(row)), ...times(row.latency_us)]), 8);
  const byKey = (key: (typeof keys)[number]) => {
    const groups = new Map<string, { ok: number; failed: number; received: number }>();
    for (const row of rows) {
      const sum = groups.get(row[key]) ?? { ok: 0, failed: 0, received: 0 };
      groups.set(row[key], { ok: sum.ok + row.ok, failed: sum.failed + row.failed, received: sum.received + row.bytes_received });
    }
    return table([key, 'ok', 'failed', 'received'], [...groups].map(([name, sum]) => [name, format.count(sum.ok), format.count(sum.failed), format.bytes(sum.received)]), 3);
  };
  const byStatus = () => table(['status', 'responses', 'share'], Object.entries(summary.status).map(([status, number]) => [status, format.count(number), format.percent(number / Math.max(1, Object.values(summary.status).reduce((a, b) => a + b, 0)))]), 2);
  const views: [string, () => HTMLElement][] = [['each', byRow], ...keys.filter((key) => new Set(rows.map((row) => row[key])).size > 1).map((key): [string, () => HTMLElement] => [`by ${key === 'url' ? 'URL' : key}`, () => byKey(key)]), ...(!kind && Object.keys(summary.status).length > 0 ? [['by status', byStatus] as [string, () => HTMLElement]] : [])];
  const buttons = views.map(([name, draw], idx) => h('button', { type: 'button', class: 'small', 'aria-pressed': String(idx === 0), click: (event) => {
    buttons.forEach((button) => button.setAttribute('aria-pressed', String(button === event.currentTarget)));
    host.replaceChildren(draw());
  } }, name));
  host.append(rows.length > 0 ? byRow() : h('p', { class: 'note' }, `No ${wordsOf(kind?.kind ?? summary.totals.kinds[0]?.kind).one} ended.`));
  return h('div', {}, h('div', { class: 'filters' }, buttons), host);
}

function details({ summary }: RunPage): HTMLElement {
  const facts = Object.entries(summary.environment).map(([name, value]) => [name.replaceAll('_', ' '), value]);
  return section('What was run', fold('plan as run', () => h('pre', {}, JSON.stringify(summary.plan, null, 2))), fold('environment', () => table(['fact', ''], facts, 0)));
}
