// The figures that people ask for, in tiles: of requests, handshakes, idle connections and foreign tools each apart.

import type { KindTotals, RunPage, Tool } from '../data';
import { h } from '../dom';
import * as format from '../format';
import { tile } from '../parts';
import { wordsOf } from '../words';

/** One row of tiles where one kind of thing was made, else a titled row for each kind. */
export function tiles(page: RunPage): HTMLElement[] {
  const { tools, summary: { totals } } = page;
  const made = totals.kinds.map((kind, idx): [string, HTMLElement[]] => [wordsOf(kind.kind).title, kindTiles(page, kind, page.asked_per_s[idx] ?? null)]);
  const groups: [string, HTMLElement[]][] = [...made, ...(tools.length > 0 ? [['Other tools, as reported by them', toolTiles(tools)] as [string, HTMLElement[]]] : [])];
  const own = totals.kinds.length > 0 ? runTiles(page) : [];
  if (groups.length <= 1) return [h('div', { class: 'tiles' }, groups.flatMap(([, all]) => all), own)];
  return [...groups, ['All together', own] as [string, HTMLElement[]]].filter(([, all]) => all.length > 0).map(([title, all]) => h('div', { class: 'tile-group' }, h('h3', {}, title), h('div', { class: 'tiles' }, all)));
}

function kindTiles(page: RunPage, kind: KindTotals, asked: number | null): HTMLElement[] {
  if (kind.kind === 'idle_connections') return idleTiles(page, kind);
  if (kind.kind === 'websockets') return [...messageTiles(page), ...idleTiles(page, kind)];
  if (kind.kind === 'streams') return [...eventTiles(page), ...requestTiles(page, kind, asked)];
  return requestTiles(page, kind, asked);
}

function messageTiles({ summary: { totals: { websockets: made } } }: RunPage): HTMLElement[] {
  if (!made) return [];
  return [
    tile('messages per second', format.rate(made.received_per_s), `${format.count(made.messages_received)} received`),
    tile('median message latency', format.time(made.latency_us.p50), `p99 ${format.time(made.latency_us.p99)}`),
    tile('unanswered', format.count(made.unanswered), made.mismatched > 0 ? `${format.count(made.mismatched)} not as sent` : ''),
  ];
}

function eventTiles({ summary: { totals: { streams: made } } }: RunPage): HTMLElement[] {
  if (!made) return [];
  return [
    tile('events per second', format.rate(made.events_per_s), `${format.count(made.events)} received`),
    tile('median time to first event', format.time(made.first_event_us.p50), `p99 ${format.time(made.first_event_us.p99)}`),
    tile('median gap', format.time(made.event_gap_us.p50), `p99 ${format.time(made.event_gap_us.p99)}`),
    ...(made.good !== null && made.judged ? [tile('good', format.percent(made.good / made.judged), `${format.count(made.good)} of ${format.count(made.judged)}`)] : []),
  ];
}

function requestTiles(page: RunPage, kind: KindTotals, asked: number | null): HTMLElement[] {
  const { many, ok } = wordsOf(kind.kind);
  const { latency_us: latency } = kind;
  const settled = kind.ok + kind.failed;
  const made = page.summary.totals.handshakes;
  const detail = [kind.interrupted > 0 ? `${format.count(kind.interrupted)} interrupted` : '', kind.kind === 'handshakes' && made ? `${format.short(made.full)} full, ${format.short(made.resumed)} resumed` : ''].filter(Boolean).join(', ');
  const from = kind.kind === 'requests' ? (asked === null ? 'from sending' : 'from the intended start') : (asked === null ? 'from connecting' : 'from the intended start');
  return [
    tile(`${many} per second`, format.rate(kind.rate_per_s), asked === null ? '' : `scheduled ${format.rate(asked)}`),
    tile(ok, format.count(kind.ok), detail),
    tile('failed', format.count(kind.failed), settled > 0 ? format.percent(kind.failed / settled) : ''),
    tile(kind.kind === 'requests' ? 'median latency' : 'median time', format.time(latency.p50), from),
    tile('99th percentile', format.time(latency.p99), `p99.9 ${format.time(latency.p99_9)}`),
    tile('slowest', format.time(latency.max), `of ${format.short(latency.count)}`),
  ];
}

function idleTiles({ summary }: RunPage, kind: KindTotals): HTMLElement[] {
  const kept = summary.totals.idle_connections;
  const lost = kept ? kept.closed_by_server + kept.reset + kept.broken : 0;
  const settled = kind.ok + kind.failed;
  return [
    tile('opened', format.count(kind.ok), format.rate(kind.rate_per_s)),
    ...(kept ? [tile('peak open', format.count(kept.open_max)), tile('lost', format.count(lost), kept.closed_by_server > 0 ? `${format.count(kept.closed_by_server)} closed by the server` : '')] : []),
    tile('failed', format.count(kind.failed), settled > 0 ? format.percent(kind.failed / settled) : ''),
    tile('median time to open', format.time(kind.latency_us.p50), `p99 ${format.time(kind.latency_us.p99)}`),
    ...(kept && kept.memory_bytes_each !== null ? [tile('generator memory for each', format.bytes(kept.memory_bytes_each))] : []),
  ];
}

/** What is of the whole run, whatever it made. */
function runTiles({ summary: { totals, generator } }: RunPage): HTMLElement[] {
  // Time of one CPU for each of different things would be a sum of them.
  const each = generator.cpu_us_per_request === null || totals.kinds.length > 1 ? '' : `${format.time(generator.cpu_us_per_request)} CPU per ${wordsOf(totals.kinds[0]?.kind).one}`;
  return [
    // What a script's users went through says more than its bytes, which are charted below.
    totals.iterations === undefined ? tile('received', format.bytes(totals.bytes_received), `sent ${format.bytes(totals.bytes_sent)}`) : tile('iterations', format.count(totals.iterations), totals.iterations_dropped ? `${format.count(totals.iterations_dropped)} dropped` : 'of the script'),
    tile('generator busy', format.percent(generator.busy), each),
  ];
}

/** A tile for each tool and load: counts and rates of its machines add up. */
function toolTiles(tools: Tool[]): HTMLElement[] {
  const groups = new Map<string, Tool[]>();
  tools.forEach((run) => groups.set(`${run.load}: ${run.tool}`, [...(groups.get(`${run.load}: ${run.tool}`) ?? []), run]));
  return [...groups].map(([name, runs]) => {
    const { requests, failed, rate_per_s } = summed(runs);
    const what = runs[0]!.tool === 'tls-perf' ? 'handshakes' : 'requests';
    const detail = [rate_per_s === null ? '' : format.rate(rate_per_s), failed ? `${format.count(failed)} failed` : '', runs.length > 1 ? `on ${runs.length} machines` : ''].filter(Boolean);
    return tile(name, requests === null ? '–' : format.count(requests), [what, ...detail].join(', '));
  });
}

/** Of several runs of a tool what adds up; `null` where one of them did not print it. */
export function summed(runs: Tool[]): { requests: number | null; failed: number | null; rate_per_s: number | null } {
  const sum = (of: (run: Tool) => number | null) => runs.reduce((all: number | null, run) => { const one = of(run); return all === null || one === null ? null : all + one; }, 0);
  return { requests: sum((run) => run.figures.requests), failed: sum((run) => run.figures.failed ?? 0), rate_per_s: sum((run) => run.figures.rate_per_s) };
}
