// The parts of a run: its steps as a table on top, then its loads, its machines, and each load on each machine, as charts and rows.

import { type Board, type Chart } from '../chart';
import type { Part, Phases, RunPage, Tool } from '../data';
import { h, section, table } from '../dom';
import * as format from '../format';
import { TONES } from '../parts';
import { cameOf, wordsOf } from '../words';
import { comparedSpecs } from './series';
import { summed } from './tiles';

/** Which part it is: names may be the same of a load and a machine, and of a machine that made different things. */
export const keyOf = (part: Part) => `${part.kind} ${part.makes ?? ''} ${part.name}`;

export function verdictOf(part: Part): HTMLElement | string {
  if (part.problem) return h('span', { class: 'tone bad' }, part.problem);
  return part.status ? h('span', { class: `tone ${TONES[part.status]}` }, part.status) : '';
}

/** Each step with a row for each of its loads: nothing is added up. `null` where there is one step only. */
export function stepsTable({ parts, tools }: RunPage): HTMLElement | null {
  const steps = parts.filter((part) => part.kind === 'step').sort((a, b) => a.at_s - b.at_s);
  if (steps.length < 2) return null;
  const head = ['', 'step', 'from', 'for', 'load', 'verdict', 'made', 'failed', 'rate', 'p50', 'p99', 'max', 'received'];
  const rows = steps.flatMap((step, idx) => {
    const next_s = steps[idx + 1]?.at_s ?? Infinity;
    const isIn = ({ at_s }: { at_s: number }) => at_s >= step.at_s && at_s < next_s;
    const loads = parts.filter((part) => part.kind === 'load' && isIn(part)).map((load) => loadCells(load, tools));
    const cells = loads.length > 0 ? loads : [['–', verdictOf(step), '', '', '', '', '', '', '']];
    return cells.map((own, row) => [...(row === 0 ? [String(idx + 1), step.name, format.clock(step.at_s), format.span(step.duration_s)] : ['', '', '', '']), ...own]);
  });
  return h('div', { class: 'steps' }, table(head, rows, 7));
}

function loadCells(load: Part, tools: Tool[]): (string | HTMLElement)[] {
  const runs = tools.filter((run) => run.load === load.name);
  if (runs.length > 0) {
    const { requests, failed, rate_per_s } = summed(runs);
    const time = (name: string) => (runs.length === 1 ? format.time(runs[0]!.figures.latency_us[name]) : '–');
    const made = requests === null ? runs[0]!.tool : `${format.count(requests)} by ${runs[0]!.tool}`;
    return [load.name, verdictOf(load), made, format.count(failed), format.rate(rate_per_s), time('p50'), time('p99'), time('max'), '–'];
  }
  // What came says more than what was opened once.
  const { p50, p99, max } = load.received_latency_us ?? load.latency_us;
  const made = load.received === undefined ? `${format.count(load.ok)} ${wordsOf(load.makes).many}` : `${format.count(load.received)} ${cameOf(load.makes)}`;
  return [load.name, verdictOf(load), made, format.count(load.failed), format.rate(receivedPerS(load) ?? load.rate_per_s), format.time(p50), format.time(p99), format.time(max), format.bytes(load.bytes_received)];
}

/** Messages or events per second. */
function receivedPerS({ received, duration_s }: Part): number | null {
  return received === undefined || duration_s <= 0 ? null : received / duration_s;
}

/** A section that is there when the run has more than one part of its kind. */
export interface PartSection { element: HTMLElement; draw(page: RunPage): void }

const SECTIONS = [
  { kind: 'load', title: 'Loads', by: 'by load' },
  { kind: 'machine', title: 'Machines', by: 'by machine' },
  { kind: 'share', title: 'Each load on each machine', by: 'by load and machine' },
] as const;

export function partSections(board: Board, choose: (key: string) => void): PartSection[] {
  return SECTIONS.map(({ kind, title, by }) => {
    const rows = h('div');
    const charts = new Map<string, Chart>();
    const chartHost = h('div', { class: 'charts' });
    const element = section(title, chartHost, rows);
    const draw = (page: RunPage) => {
      const own = ownParts(page, kind);
      element.hidden = own.length === 0;
      rows.replaceChildren(partTable(own, page, choose));
      for (const spec of comparedSpecs(own, page.series.columns, by, page.warmup_s)) {
        const chart = charts.get(spec.title);
        if (chart) chart.update(spec);
        else {
          const added = board.add(spec);
          charts.set(spec.title, added);
          chartHost.append(added.element);
        }
      }
    };
    return { element, draw };
  });
}

/** None of a kind of which there is one that went well. Where one machine made everything, or every machine one load, shares say the same again. */
function ownParts({ parts, tools }: RunPage, kind: Part['kind']): Part[] {
  const of = (kind: Part['kind']) => parts.filter((part) => part.kind === kind);
  const byTool = (part: Part) => kind === 'load' && tools.some((run) => run.load === part.name);
  const own = of(kind).filter((part) => !byTool(part));
  const names = (kind: Part['kind']) => new Set(of(kind).map((part) => part.name)).size;
  if (kind === 'share') return names('machine') > 1 && names('load') > 1 ? own : [];
  return names(kind) > 1 || own.some((part) => part.problem) ? own : [];
}

const PHASES: [keyof Phases, string][] = [['blocked', 'waited'], ['connecting', 'connect'], ['tls_handshaking', 'TLS'], ['sending', 'send'], ['waiting', 'answer'], ['receiving', 'receive']];

function partTable(parts: Part[], { cause_labels, warmup_s }: RunPage, choose: (key: string) => void): HTMLElement {
  if (parts.length === 0) return h('div');
  const kind = parts[0]!.kind;
  const phases = PHASES.filter(([name]) => parts.some((part) => (part.phases_mean_us?.[name] ?? 0) > 0));
  const isMixed = new Set(parts.map((part) => part.makes)).size > 1;
  const hasBusy = parts.some((part) => part.busy !== null);
  const hasVerdict = parts.some((part) => part.status !== null || part.problem !== null);
  const receiving = parts.filter((part) => part.received !== undefined);
  const cameName = cameOf(receiving.every((part) => part.makes === receiving[0]!.makes) ? receiving[0]?.makes : null);
  const came = receiving.length > 0 ? [cameName, 'per second', 'p50', 'p99'] : [];
  const cameCells = (part: Part) => (came.length === 0 ? [] : [part.received === undefined ? '–' : format.count(part.received), part.received === undefined ? '–' : format.rate(receivedPerS(part) ?? 0), format.time(part.received_latency_us?.p50), format.time(part.received_latency_us?.p99)]);
  const head = [kind === 'share' ? 'load' : kind, ...(kind === 'share' ? ['machine'] : []), ...(isMixed ? ['made'] : []), ...(hasVerdict ? ['verdict'] : []), 'errors', 'from', 'for', 'ok', 'failed', 'rate', 'p50', 'p99', 'max', ...came, ...phases.map(([, name]) => name), 'received', 'sent', ...(hasBusy ? ['busy'] : [])];
  const errors = (part: Part) => Object.entries(part.failures).map(([cause, count]) => `${format.count(count)} × ${cause_labels[cause] ?? cause.replaceAll('_', ' ')}`).join(', ') || '–';
  const rows = parts.map((part) => [
    part.points.length > 0 ? h('button', { type: 'button', class: 'link', title: 'show its charts over time', click: () => choose(keyOf(part)) }, kind === 'share' ? part.load! : part.name) : part.load ?? part.name,
    ...(kind === 'share' ? [part.machine!] : []), ...(isMixed ? [wordsOf(part.makes).many] : []), ...(hasVerdict ? [verdictOf(part)] : []), errors(part),
    format.clock(part.at_s + warmup_s), format.span(part.duration_s), format.count(part.ok), format.count(part.failed), format.rate(part.rate_per_s),
    ...[part.latency_us.p50, part.latency_us.p99, part.latency_us.max].map(format.time), ...cameCells(part),
    ...phases.map(([name]) => format.time(part.phases_mean_us?.[name] || null)), format.bytes(part.bytes_received), format.bytes(part.bytes_sent), ...(hasBusy ? [format.percent(part.busy)] : []),
  ]);
  const numeric = head.length - head.indexOf('from');
  const note = phases.length > 0 ? h('p', { class: 'note' }, `${phases.map(([, name]) => name).join(', ')}: breakdown of the mean time. Click a name to show its charts over time.`) : null;
  return h('div', { class: 'parts' }, table(head, rows, numeric), note);
}
