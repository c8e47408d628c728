// One chart: a title, a uPlot canvas with its legend, and the same figures as a table. `Board` ties those over time together.

import uPlot from 'uplot';
import { color, fold, h, table } from './dom';
import * as format from './format';

export type Values = (number | null)[];

export interface Line {
  name: string;
  /** `null` is a gap, `undefined` is drawn through. */
  values: (number | null | undefined)[];
  /** A colour of the style sheet, such as `c1`. */
  color: string;
  dash?: number[];
  width?: number;
  /** Share of the colour between this line and the axis, or in a stack the one below. */
  fill?: number;
  hidden?: boolean;
  /** Size of its points, filled; without it they are rings, and only where they are few. */
  dot?: number;
  unit?: string;
}

export interface Spec {
  title: string;
  /** One sentence on how to read it. */
  note?: string;
  unit: string;
  x: number[];
  lines: Line[];
  log?: boolean;
  /** Lines stand on each other. */
  stacked?: boolean;
  /** Areas between two lines, by their index: the upper one, the lower one, and how strong. */
  bands?: [number, number, number][];
  /** The largest y, where it is known beforehand. */
  yMax?: number;
  /** Draws below the lines. */
  under?: (plot: uPlot) => void;
  yRange?: [number, number];
}

/** How the x axis is divided and written. */
export interface XAxis {
  label: string;
  log?: boolean;
  splits?: (min: number, max: number) => number[];
  incrs?: number[];
  text: (value: number, step: number) => string;
  head: string;
}

const STEPS_S = [0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400];

export const TIME: XAxis = { label: '', incrs: STEPS_S, text: (value, step) => format.clock(value, step), head: 'time' };

export const NINES: XAxis = {
  label: 'percentile of requests, logarithmic towards 100 %',
  splits: (min, max) => [0, Math.log10(2), 1, 2, 3, 4, 5, 6, 7, 8, 9].filter((nines) => nines >= min && nines <= max),
  text: (nines) => (nines === 0 ? 'min' : format.percentile(nines)),
  head: 'percentile',
};

/** Moments and spans that every chart over time shows. */
export interface Marks { warmup_s: number; bands: Band[]; events: { at_s: number; label: string; kind: string }[]; impaired: [number, number][] }

/** A step of a plan: a shaded span with its name above it. */
export interface Band { from_s: number; to_s: number; label: string }

export class Chart {
  readonly element: HTMLElement;
  private readonly host = h('div', { class: 'plot' });
  private plot: uPlot | undefined;
  private isLog: boolean;
  private tableHost = h('div');
  private readonly observer = new ResizeObserver(() => this.resize());

  constructor(private spec: Spec, private readonly axis: XAxis, private readonly board?: Board) {
    this.isLog = spec.log ?? false;
    const toggle = spec.log === undefined ? null : h('button', { class: 'small', type: 'button', 'aria-pressed': String(this.isLog), click: (event) => this.setLog(event) }, 'log scale');
    this.element = h('figure', { class: 'chart' },
      h('figcaption', {}, h('h3', {}, spec.title), spec.note ? h('p', {}, spec.note) : null, toggle),
      this.host, this.tableHost);
    this.fillTable();
    this.observer.observe(this.host);
    // Building reads the style sheet and the width, so it waits for the element to be on the page.
    requestAnimationFrame(() => this.build());
  }

  /** New figures of the same lines. */
  update(spec: Spec): void {
    const isSame = spec.lines.length === this.spec.lines.length && spec.lines.every((line, idx) => line.name === this.spec.lines[idx]!.name);
    this.spec = spec;
    if (this.plot && isSame) this.plot.setData(this.data(), true);
    else this.build();
    if (!this.tableHost.querySelector('details')?.open) this.fillTable();
  }

  destroy(): void { this.plot?.destroy(); this.plot = undefined; this.observer.disconnect(); }

  /** Colours are read when drawing. */
  redraw(): void { this.plot?.redraw(false); }

  rescale(): void {
    const [min, max] = this.xRange();
    this.plot?.setScale('x', { min, max });
  }

  toggleLine(idx: number): void { this.plot?.setSeries(idx + 1, { show: !this.plot.series[idx + 1]!.show }); }

  private setLog(event: Event): void {
    this.isLog = !this.isLog;
    (event.currentTarget as HTMLElement).setAttribute('aria-pressed', String(this.isLog));
    this.build();
  }

  private build(): void {
    if (!this.host.isConnected) return;
    const shown = this.plot?.series.map((line) => line.show);
    this.plot?.destroy();
    this.plot = new uPlot(this.options(), this.data(), this.host);
    shown?.forEach((show, idx) => { if (show === false && idx > 0 && idx < this.plot!.series.length) this.plot!.setSeries(idx, { show }); });
    for (const [idx, label] of [...this.host.querySelectorAll<HTMLElement>('.u-series th')].entries()) {
      if (idx === 0) continue;
      label.tabIndex = 0;
      label.setAttribute('role', 'button');
      label.addEventListener('keydown', (event) => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); this.toggleLine(idx - 1); } });
    }
  }

  private resize(): void {
    if (!this.plot) return this.build();
    const { width, height } = this.size();
    if (width !== this.plot.width || height !== this.plot.height) this.plot.setSize({ width, height });
  }

  private size(): { width: number; height: number } {
    const width = Math.max(200, this.host.clientWidth);
    return { width, height: width < 480 ? 190 : 240 };
  }

  private data(): uPlot.AlignedData {
    const { lines, stacked } = this.spec;
    if (!stacked) return [this.spec.x, ...lines.map((line) => (this.isLog ? line.values.map(onLog) : line.values))];
    const sums: number[] = new Array(this.spec.x.length).fill(0);
    const isGap = this.spec.x.map((_, idx) => lines.every((line) => line.values[idx] === null));
    return [this.spec.x, ...lines.map((line) => line.values.map((value, idx) => (isGap[idx] ? null : (sums[idx]! += value ?? 0))))];
  }

  private xRange(): [number, number] {
    if (this.board) return this.board.xRange();
    const { x } = this.spec;
    const [min, max] = [x[0] ?? 0, x[x.length - 1] ?? 1];
    return max > min ? [min, max] : this.axis.log ? [min / 2, min * 2] : [min - 0.5, min + 0.5];
  }

  private options(): uPlot.Options {
    const spec = this.spec;
    const grid = { stroke: () => color('grid'), width: 1 };
    const ink = () => color('muted');
    const font = '12px system-ui, sans-serif';
    const text = (value: number | null | undefined, unit = spec.unit) => format.inUnit(value, unit);
    const bands: uPlot.Band[] = (spec.bands ?? []).map(([upper, lower, strength]) => ({ series: [upper + 1, lower + 1], fill: () => faded(color(spec.lines[upper]!.color), strength) }));
    if (spec.stacked) spec.lines.forEach((line, idx) => { if (idx > 0) bands.push({ series: [idx + 1, idx], fill: () => faded(color(line.color), 0.55) }); });
    return {
      ...this.size(),
      padding: [() => 12 + (this.board ? BAND_LINE_PX * this.labels(this.host.clientWidth - AXIS_PX - 32).rows : 0), 32, 0, 0],
      scales: {
        x: { time: false, distr: this.axis.log ? 3 : 1, range: () => this.xRange() },
        y: { distr: this.isLog ? 3 : 1, range: (_plot, min, max) => this.yRange(min, max) },
      },
      axes: [
        { stroke: ink, grid, ticks: grid, font, size: this.axis.label ? 48 : 32, ...(this.axis.label ? { label: this.axis.label, labelFont: font, labelSize: 18 } : {}),
          ...(this.axis.incrs ? { incrs: this.axis.incrs } : {}),
          ...(this.axis.splits ? { filter: (_plot: uPlot, splits: number[]) => splits, splits: (_plot: uPlot, _axis: number, min: number, max: number) => this.axis.splits!(min, max) } : {}),
          values: (_plot, splits) => splits.map((value) => (value === null ? '' : this.axis.text(value, (splits[1] ?? 1) - (splits[0] ?? 0)))) },
        { stroke: ink, grid, ticks: grid, font, size: AXIS_PX, values: (_plot, splits) => splits.map((value) => text(value)), ...(this.isLog ? { splits: (_plot: uPlot, _axis: number, min: number, max: number) => logSplits(min, max), filter: (_plot: uPlot, splits: number[]) => splits } : {}), ...(spec.unit.startsWith('bytes') ? { incrs: BINARY_STEPS } : {}) },
      ],
      series: [
        { label: this.axis.head, value: (_plot, value) => (value === null ? '–' : this.axis.text(value, 0.1)) },
        ...spec.lines.map((line, idx): uPlot.Series => ({
          label: line.name,
          show: !line.hidden,
          stroke: () => color(line.color),
          width: line.width ?? 1.75,
          ...(line.dash ? { dash: line.dash } : {}),
          ...(line.fill || (spec.stacked && idx === 0) ? { fill: () => faded(color(line.color), line.fill ?? 0.55) } : {}),
          spanGaps: this.axis !== TIME,
          points: line.dot ? { size: line.dot, show: true, fill: () => color(line.color) } : { size: 5, show: spec.x.length <= 60 },
          value: (_plot, _value, _line, at) => text(at === null || at === undefined ? null : spec === this.spec ? line.values[at] : this.spec.lines[idx]!.values[at], line.unit),
        })),
      ],
      bands,
      legend: { live: true },
      cursor: {
        ...(this.board ? { sync: { key: this.board.key, setSeries: false } } : {}),
        drag: { x: this.board !== undefined, y: false, setScale: false },
        bind: { dblclick: () => () => { this.board?.zoom(null); return null; } },
        focus: { prox: 24 },
      },
      focus: { alpha: 0.45 },
      hooks: {
        drawClear: [(plot) => { if (this.board) drawBands(plot, this.board.marks.bands, this.labels(plot.bbox.width / devicePixelRatio)); }],
        drawAxes: [(plot) => { if (this.board) drawMarks(plot, this.board.marks); spec === this.spec ? spec.under?.(plot) : this.spec.under?.(plot); }],
        setSelect: [(plot) => this.select(plot)],
      },
    };
  }

  /** The names of the steps as they fit above this chart. */
  private labels(width: number): BandLabels { return bandLabels(this.board!.marks.bands, this.xRange(), width); }

  private select(plot: uPlot): void {
    const { left, width } = plot.select;
    if (!this.board || width < 4) return;
    const range: [number, number] = [plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')];
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.board.zoom(range);
  }

  private yRange(min: number | null, max: number | null): [number, number] {
    if (this.spec.yRange) return this.spec.yRange;
    if (this.isLog) {
      const [low, high] = [min && min > 0 ? min : 1, max && max > 0 ? max : 10];
      return [low / 1.25, Math.max(high * 1.25, low * 4)];
    }
    const top = Math.max(max ?? 0, this.spec.yMax ?? 0);
    return [0, top > 0 ? top * 1.06 : 1];
  }

  private fillTable(): void {
    this.tableHost.replaceChildren(fold('table', () => this.table()));
  }

  private table(): Node[] {
    const { x, lines, unit } = this.spec;
    const step = Math.max(1, Math.ceil(x.length / TABLE_ROWS_MAX));
    const rows = x.map((at, idx) => [this.axis.text(at, 0.1), ...lines.map((line) => format.inUnit(line.values[idx], line.unit ?? unit))]).filter((_, idx) => idx % step === 0);
    const note = step > 1 ? [h('p', { class: 'note' }, `One in ${step} of ${x.length} points; the CSV has all of them.`)] : [];
    return [...note, table([this.axis.head, ...lines.map((line) => line.name)], rows)];
  }
}

/** Charts over the same time: one cursor, one zoom, the same marks. */
export class Board {
  readonly key = `board-${Math.random()}`;
  readonly charts: Chart[] = [];
  private range: [number, number] | null = null;
  onZoom: (range: [number, number] | null) => void = () => {};

  constructor(public end_s: number, public marks: Marks) {}

  add(spec: Spec): Chart {
    const chart = new Chart(spec, TIME, this);
    this.charts.push(chart);
    return chart;
  }

  xRange(): [number, number] { return this.range ?? [0, Math.max(this.end_s, 0.1)]; }

  zoom(range: [number, number] | null): void {
    this.range = range && range[1] > range[0] ? range : null;
    this.charts.forEach((chart) => chart.rescale());
    this.onZoom(this.range);
  }

  redraw(): void { this.charts.forEach((chart) => chart.redraw()); }

  /** Takes charts off the board. */
  remove(charts: Chart[]): void {
    charts.forEach((chart) => { chart.destroy(); this.charts.splice(this.charts.indexOf(chart), 1); });
  }
}

/** The lines of each band's label, and how many lines the highest one has. */
interface BandLabels { labels: string[][]; rows: number }

/** Each label in full within the width of its band; where one does not fit, each band has its number instead, which the steps table explains. */
function bandLabels(bands: Band[], [min, max]: [number, number], width: number): BandLabels {
  if (bands.length === 0) return { labels: [], rows: 0 };
  const context = document.createElement('canvas').getContext('2d')!;
  context.font = BAND_FONT;
  const measure = (text: string) => context.measureText(text).width;
  const wide = bands.map(({ from_s, to_s }) => ((Math.min(to_s, max) - Math.max(from_s, min)) / Math.max(max - min, 1e-9)) * width - 6);
  const labels = bands.map(({ label }, idx) => (wide[idx]! > 0 ? wrapped(label, wide[idx]!, measure) : []));
  const fits = labels.every((lines, idx) => lines.length <= BAND_ROWS_MAX && lines.every((text) => measure(text) <= wide[idx]!));
  if (!fits) return { labels: bands.map((_, idx) => (wide[idx]! > 0 ? [String(idx + 1)] : [])), rows: 1 };
  return { labels, rows: Math.max(...labels.map((lines) => lines.length)) };
}

function wrapped(text: string, width: number, measure: (text: string) => number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines[lines.length - 1];
    if (last !== undefined && measure(`${last} ${word}`) <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** Below everything else: every second band is shaded, and each has its label above the plot. */
function drawBands(plot: uPlot, bands: Band[], { labels, rows }: BandLabels): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  const at = (seconds: number) => Math.min(Math.max(plot.valToPos(seconds, 'x', true), bbox.left), bbox.left + bbox.width);
  ctx.save();
  ctx.font = BAND_FONT.replace(/^\d+/, (size) => String(Number(size) * ratio));
  ctx.textAlign = 'center';
  ctx.textBaseline = 'alphabetic';
  bands.forEach((band, idx) => {
    const [left, right] = [at(band.from_s), at(band.to_s)];
    if (right <= left) return;
    ctx.fillStyle = faded(color('muted'), idx % 2 === 0 ? 0.13 : 0.05);
    ctx.fillRect(left, bbox.top, right - left, bbox.height);
    ctx.fillStyle = color('muted');
    ctx.fillRect(left, bbox.top, ratio, bbox.height);
    const lines = labels[idx] ?? [];
    const first = bbox.top - (rows * BAND_LINE_PX - 8) * ratio + (rows - lines.length) * BAND_LINE_PX * ratio;
    lines.forEach((text, row) => ctx.fillText(text, (left + right) / 2, first + row * BAND_LINE_PX * ratio));
  });
  ctx.restore();
}

function drawMarks(plot: uPlot, marks: Marks): void {
  const { ctx, bbox } = plot;
  const at = (seconds: number) => Math.min(Math.max(plot.valToPos(seconds, 'x', true), bbox.left), bbox.left + bbox.width);
  const ratio = devicePixelRatio;
  ctx.save();
  if (marks.warmup_s > 0) {
    ctx.fillStyle = faded(color('muted'), 0.14);
    ctx.fillRect(bbox.left, bbox.top, at(marks.warmup_s) - bbox.left, bbox.height);
  }
  ctx.fillStyle = color('suspect');
  for (const [from, to] of marks.impaired) ctx.fillRect(at(from), bbox.top, Math.max(at(to) - at(from), ratio), 3 * ratio);
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'alphabetic';
  let free = bbox.left;
  for (const mark of marks.events) {
    const x = plot.valToPos(mark.at_s, 'x', true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.strokeStyle = ctx.fillStyle = color(mark.kind === 'lost' || mark.kind === 'restart' ? 'bad' : 'muted');
    ctx.setLineDash([4 * ratio, 4 * ratio]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const width = ctx.measureText(mark.label).width;
    if (x >= free && x + width < bbox.left + bbox.width) {
      ctx.fillText(mark.label, x + 4 * ratio, bbox.top + 13 * ratio);
      free = x + width + 12 * ratio;
    }
  }
  ctx.restore();
}

/** A log scale has no zero; what is drawn through stays so. */
const onLog = (value: number | null | undefined) => (value === undefined || (value !== null && value > 0) ? value : null);

/** Whole decades, and 2 and 5 between them where there is space. */
function logSplits(min: number, max: number): number[] {
  const decades = Math.log10(max / min);
  const marks = decades > 2.6 ? [1] : decades > 1.2 ? [1, 2, 5] : decades > 0.6 ? [1, 2, 3, 5, 7] : [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9];
  const all: number[] = [];
  for (let decade = Math.floor(Math.log10(min)); decade <= Math.ceil(Math.log10(max)); decade++) all.push(...marks.map((mark) => mark * 10 ** decade));
  return all.filter((value) => value >= min && value <= max);
}

export function faded(hex: string, alpha: number): string {
  const parts = /^#(..)(..)(..)$/.exec(hex);
  return parts ? `rgba(${parts.slice(1).map((part) => parseInt(part, 16)).join(',')},${alpha})` : hex;
}

/** Steps of sizes that read as round numbers of KiB and MiB. */
const BINARY_STEPS = Array.from({ length: 50 }, (_, power) => 2 ** power);

const TABLE_ROWS_MAX = 400;

/** The width of the y axis. */
const AXIS_PX = 82;

const BAND_FONT = '11px system-ui, sans-serif';
const BAND_LINE_PX = 14;
/** More lines than this leave too little of the chart. */
const BAND_ROWS_MAX = 3;
