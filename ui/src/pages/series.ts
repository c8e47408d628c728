// Charts over time of one series: of a whole run, of a kind of load, of a load, a machine, or a load on a machine.

import type { Line, Spec } from '../chart';
import { column, type LoadKind, type Part, type Point, type Series } from '../data';
import { drawHeat, heatRange } from '../heat';
import { capital, wordsOf } from '../words';

export interface Scope {
  series: Series;
  /** What is counted; `null` where a series counts different things, and so has no rate. */
  kind: LoadKind | null;
  /** Before each title, where several series are on one page. */
  prefix: string;
  warmup_s: number;
  causes: Record<string, string>;
}

type Reader = ReturnType<typeof reader>;

/** Every chart for which there are figures. */
export function seriesSpecs(scope: Scope): Spec[] {
  const read = reader(scope.series, scope.warmup_s);
  const isKept = scope.kind === 'idle_connections' || scope.kind === 'websockets';
  const made = isKept ? [opened(scope, read)] : scope.kind ? [rate(scope, read)] : [];
  const latencies = scope.kind ? [latency(scope, read), ...heat(scope, read), ...phases(scope, read)] : [];
  const came = scope.kind ? [...received(scope, read), ...made, ...reconnects(scope, read)] : [];
  return [...came, ...latencies, ...failures(scope, read), ...network(scope, read), ...(isKept ? [] : connections(scope, read)), ...paths(scope, read), ...generator(scope, read)];
}

/** One line for each part, on one chart for each figure. */
export function comparedSpecs(parts: Part[], columns: string[], title: string, warmup_s: number): Spec[] {
  const drawn = parts.filter((part) => part.points.length > 0);
  const specs: Spec[] = [];
  for (const kind of ['requests', 'handshakes', 'idle_connections', 'streams', 'websockets'] as const) {
    const own = drawn.filter((part) => part.makes === kind);
    if (own.length < 2) continue;
    const words = wordsOf(kind);
    const isKept = kind === 'idle_connections' || kind === 'websockets';
    const figure = isKept
      ? compared(own, columns, (read) => read.values('open'), warmup_s)
      : compared(own, columns, (read) => read.perSecond('ok'), warmup_s);
    specs.push({ title: `${words.title} ${title}`, note: isKept ? 'Open at the end of each interval.' : `${capital(words.many)} per second that ${words.ok}.`, unit: isKept ? 'count' : 'per_second', ...figure });
    const times = compared(own, columns, (read) => read.values('p99'), warmup_s);
    if (has(times)) specs.push({ title: `${words.title}: p99 ${title}`, note: `The 99th percentile of the ${words.latency}.`, unit: 'us', log: true, ...times });
    const came = compared(own, columns, (read) => read.perSecond('received'), warmup_s);
    const what = kind === 'streams' ? 'Events' : 'Messages';
    if (has(came)) specs.push({ title: `${what} ${title}`, note: `${what} received per second.`, unit: 'per_second', ...came });
    const cameTimes = compared(own, columns, (read) => read.values('received_p99'), warmup_s);
    if (has(cameTimes)) specs.push({ title: `${what}: p99 ${title}`, note: `The 99th percentile of the ${kind === 'streams' ? 'time to the first event' : 'message latency'}.`, unit: 'us', log: true, ...cameTimes });
    const failed = compared(own, columns, (read) => read.perSecond('failed'), warmup_s);
    if (has(failed)) specs.push({ title: `${words.title}: failures ${title}`, note: `Failed ${words.many} per second.`, unit: 'per_second', ...failed });
  }
  return specs;
}

const has = ({ lines }: { lines: Line[] }) => lines.some((one) => isTelling(one.values));

/** Lines of different times on one axis: a line has gaps before and after its own time, and is drawn through within it. */
function compared(parts: Part[], columns: string[], values: (read: Reader) => (number | null)[], warmup_s: number): { x: number[]; lines: Line[] } {
  const own = parts.map((part) => {
    const read = reader({ columns, points: part.points }, warmup_s);
    return { name: part.name, at: new Map(values(read).map((value, idx) => [read.x[idx]!, value])) };
  });
  const x = [...new Set(own.flatMap(({ at }) => [...at.keys()]))].sort((a, b) => a - b);
  const lines = own.map(({ name, at }, idx): Line => {
    const [first, last] = [Math.min(...at.keys()), Math.max(...at.keys())];
    return { name, values: x.map((time) => (at.has(time) ? at.get(time)! : time > first && time < last ? undefined : null)), color: `c${(idx % 8) + 1}`, ...(idx >= 8 ? { dash: [5, 3] } : {}), hidden: idx >= LINES_SHOWN };
  });
  return { x, lines };
}

/** The columns of a series by name. */
function reader({ columns, points }: Series, warmup_s: number) {
  const whole = wholePoints({ columns, points });
  const series = { columns, points: whole.length > 0 ? whole : points };
  const spans = column(series, 'span_s').map((value) => value ?? 0);
  const starts = column(series, 'at_s').map((value) => value ?? 0);
  const values = (name: string) => column(series, name);
  return {
    points: series.points, spans, starts, values,
    x: starts.map((start, idx) => start + spans[idx]! / 2),
    // What the warm-up did is in no figure, so its rate is not zero but unknown.
    perSecond: (name: string) => values(name).map((value, idx) => (value === null || spans[idx]! <= 0 || starts[idx]! + spans[idx]! <= warmup_s ? null : value / spans[idx]!)),
  };
}

/** Without remnants of seconds, whose figures would be chance; where nothing was done for a while, as between steps, one point without any figure. */
function wholePoints({ columns, points }: Series): Point[] {
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

const isTelling = (list: Line['values']) => list.some((value) => value != null && value > 0);
const line = (name: string, list: (number | null)[], color: string, more: Partial<Line> = {}): Line => ({ name, values: list, color, ...more });
const known = (lines: Line[]) => lines.filter((one) => isTelling(one.values));
const named = ({ prefix }: Scope, title: string) => (prefix ? `${prefix}: ${title.charAt(0).toLowerCase()}${title.slice(1)}` : title);

function rate(scope: Scope, { x, perSecond }: Reader): Spec {
  const words = wordsOf(scope.kind);
  const lines = known([line('scheduled', perSecond('asked'), 'c7', { dash: [6, 4] }), line(scope.kind === 'handshakes' ? 'started' : 'sent', perSecond('started'), 'c6'), line(scope.kind === 'handshakes' ? 'completed' : 'succeeded', perSecond('ok'), 'c1', { width: 2.25 }), line('failed', perSecond('failed'), 'c2', { dash: [2, 3] })]);
  return { title: named(scope, 'Rate'), note: `${words.title} per second: scheduled, ${scope.kind === 'handshakes' ? 'started' : 'sent'}, and completed.`, unit: 'per_second', x, lines };
}

/** Messages of WebSockets and events of streams: how many came, and how long they took. */
function received(scope: Scope, { x, values, perSecond }: Reader): Spec[] {
  const rates = known([line('received', perSecond('received'), 'c1', { width: 2.25 })]);
  if (rates.length === 0) return [];
  const isStream = scope.kind === 'streams';
  const lines = [line('p50', values('received_p50'), 'c1', { width: 2.25 }), line('p90', values('received_p90'), 'c3'), line('p99', values('received_p99'), 'c5'), line('max', values('received_max'), 'c7', { dash: [3, 3] })];
  const gaps = known([line('p50', values('gap_p50'), 'c1', { width: 2.25 }), line('p95', values('gap_p95'), 'c3'), line('p99', values('gap_p99'), 'c5')]);
  return [
    { title: named(scope, isStream ? 'Events' : 'Messages'), note: isStream ? 'Events received per second.' : 'Messages received per second.', unit: 'per_second', x, lines: rates },
    { title: named(scope, isStream ? 'Time to first event' : 'Message latency'), note: isStream ? 'Percentiles of the streams whose first event arrived in each interval.' : 'Percentiles of the messages that were answered or delivered in each interval.', unit: 'us', x, lines, log: true, bands: [[1, 0, 0.16], [2, 1, 0.12]] },
    ...(gaps.length > 0 ? [{ title: named(scope, 'Gaps'), note: 'Time between two events of a stream; percentiles of each interval.', unit: 'us', x, lines: gaps, log: true } as Spec] : []),
  ];
}

/** Connections and streams that ended although they were to stay, and those that were opened again. */
function reconnects(scope: Scope, { x, values, spans }: Reader): Spec[] {
  // Points without any do not have the value.
  const counts = (name: string) => values(name).map((value, idx) => value ?? (spans[idx]! > 0 ? 0 : null));
  const lines = known([line('disconnects', counts('disconnects'), 'c2', { width: 2.25 }), line('reconnects', counts('reconnects'), 'c1', { dash: [6, 4] })]);
  const ended = scope.kind === 'streams' ? 'Streams that ended early' : 'Connections that ended and were not closed by Squall';
  return lines.length > 0 ? [{ title: named(scope, 'Disconnects and reconnects'), note: `${ended}, and those opened again, in each interval.`, unit: 'count', x, lines }] : [];
}

function opened(scope: Scope, { x, values }: Reader): Spec {
  const lines = known([line('open', values('open'), 'c1', { width: 2.25 }), line('opened', values('ok'), 'c3', { dash: [6, 4] }), line('failed', values('failed'), 'c2', { dash: [2, 3] })]);
  return { title: named(scope, 'Open'), note: 'Connections open at the end of each interval, and opened and failed during it.', unit: 'count', x, lines };
}

function latency(scope: Scope, { x, values }: Reader): Spec {
  const lines = [line('p50', values('p50'), 'c1', { width: 2.25 }), line('p90', values('p90'), 'c3'), line('p99', values('p99'), 'c5'), line('p99.9', values('p99_9'), 'c2'), line('max', values('max'), 'c7', { dash: [3, 3] })];
  const { ok, many, latency } = wordsOf(scope.kind);
  const title = scope.kind === 'requests' || !scope.prefix ? 'Latency' : capital(latency);
  return { title: named(scope, title), note: `Percentiles of the ${many} that ${ok === 'opened' ? 'were opened' : ok} in each interval.`, unit: 'us', x, lines, log: true, bands: [[1, 0, 0.16], [2, 1, 0.12], [3, 2, 0.08]] };
}

function heat(scope: Scope, { x, values, points, starts, spans }: Reader): Spec[] {
  const range = heatRange(points);
  if (!range) return [];
  const ranges = starts.map((start, idx): [number, number] => [start, start + spans[idx]!]);
  const lines = [line('median', values('p50'), 'c2', { width: 1.25 }), line('p99', values('p99'), 'c5', { width: 1.25, dash: [4, 3] })];
  return [{ title: named(scope, 'Heat map'), note: `How many ${wordsOf(scope.kind).many} had each latency: darker means more (in light mode). Two groups of latencies show as two stripes.`, unit: 'us', x, lines, log: true, yRange: range, under: (plot) => drawHeat(plot, points, ranges) }];
}

function phases(scope: Scope, { x, values }: Reader): Spec[] {
  const lines = known([line('waiting for a connection', values('blocked'), 'c7'), line('connecting', values('connecting'), 'c3'), line('TLS handshake', values('tls'), 'c8'), line('sending', values('sending'), 'c5'), line('waiting for the response', values('wait'), 'c1'), line('receiving', values('receiving'), 'c4')]);
  return lines.length > 0 ? [{ title: named(scope, 'Phases'), note: `Breakdown of the mean time of a successful ${wordsOf(scope.kind).one}.`, unit: 'us', x, lines, stacked: true }] : [];
}

function failures(scope: Scope, { x, points, spans }: Reader): Spec[] {
  const causes = [...new Set(points.flatMap((point) => Object.keys(point.e ?? {})))].sort();
  const colors = ['c2', 'c4', 'c5', 'c8', 'c7', 'c1', 'c3'];
  const of = (cause: string) => points.map((point, at) => (spans[at]! > 0 ? (point.e?.[cause] ?? 0) / spans[at]! : null));
  const lines = causes.map((cause, idx) => line(scope.causes[cause] ?? cause.replaceAll('_', ' '), of(cause), colors[idx % colors.length]!));
  return lines.length > 0 ? [{ title: named(scope, 'Failures'), note: 'Per second, by cause.', unit: 'per_second', x, lines, stacked: true }] : [];
}

function network(scope: Scope, { x, perSecond }: Reader): Spec[] {
  const lines = known([line('received', perSecond('in'), 'c1'), line('sent', perSecond('out'), 'c2')]);
  return lines.length > 0 ? [{ title: named(scope, 'Network'), note: 'Bytes per second on the wire, TLS included.', unit: 'bytes_per_second', x, lines }] : [];
}

function connections(scope: Scope, { x, values }: Reader): Spec[] {
  const lines = known([line('open', values('open'), 'c1'), line('opened', values('opened'), 'c3', { dash: [6, 4] }), line('requests waiting for one', values('waiting'), 'c2')]);
  return lines.length > 0 ? [{ title: named(scope, 'Connections'), note: 'Open at the end of each interval, and opened during it.', unit: 'count', x, lines }] : [];
}

/** The paths of QUIC connections. */
function paths(scope: Scope, { x, values, perSecond }: Reader): Spec[] {
  const specs: Spec[] = [
    { title: named(scope, 'Congestion window'), note: 'QUIC: mean congestion window of the connections open at the end of each interval, for what Squall sends.', unit: 'bytes', x, lines: known([line('congestion window', values('window'), 'c1', { width: 2.25 })]) },
    { title: named(scope, 'Round-trip time'), note: 'QUIC: mean smoothed round-trip time of the connections open at the end of each interval.', unit: 'us', x, lines: known([line('smoothed', values('rtt'), 'c3', { width: 2.25 })]) },
    { title: named(scope, 'Packets lost'), note: 'QUIC packets that were declared lost, per second.', unit: 'per_second', x, lines: known([line('lost', perSecond('lost'), 'c2')]) },
  ];
  return specs.filter((spec) => spec.lines.length > 0);
}

function generator(scope: Scope, { x, values }: Reader): Spec[] {
  const specs: Spec[] = [];
  const busy = known([line('busiest loop', values('busy'), 'c1'), line('all CPUs of its machine', values('cpu'), 'c3'), line('preempted', values('descheduled'), 'c2')]);
  if (busy.length > 0) specs.push({ title: named(scope, 'Generator'), note: 'Fraction of time; near 100 %, latencies include queueing in the generator.', unit: 'fraction', x, lines: busy, yMax: 1 });
  const lag = known([line('p99 of the lag', values('lag_p99'), 'c2')]);
  if (lag.length > 0) specs.push({ title: named(scope, 'Schedule lag'), note: `How late ${wordsOf(scope.kind).many} were ${scope.kind === 'requests' || !scope.kind ? 'sent although a connection was free' : 'started'}.`, unit: 'us', x, lines: lag });
  return specs;
}

/** More lines than this are a tangle; a click on a name in the legend shows the others. */
const LINES_SHOWN = 10;
