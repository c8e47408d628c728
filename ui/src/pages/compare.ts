// Two groups of runs: what changed, how sure that is, and all runs laid over each other.

import { Chart, NINES, TIME, type Line } from '../chart';
import type { ComparePage, Estimate, Finding, Outcome, Pair } from '../data';
import { fold, h, section, table } from '../dom';
import * as format from '../format';
import { head, moment, onTheme, TONES } from '../parts';

const OUTCOMES: Record<Outcome, string> = { better: 'good', worse: 'bad', same: 'plain', unknown: 'suspect' };

export function showCompare(host: HTMLElement, page: ComparePage): void {
  const charts = [curves(page), overTime(page, 'Rate', 'rate', 'per_second', false), overTime(page, 'Median latency', 'p50', 'us', true), overTime(page, '99th percentile', 'p99', 'us', true)];
  charts[0]!.element.classList.add('wide');
  const groups = [...new Set(page.runs.map((run) => run.group))];
  host.replaceChildren(
    head(page.title, groups.map((group) => `${page.runs.filter((run) => run.group === group).length} runs of ${group}`).join(', ')),
    ...page.pairs.flatMap((pair) => [verdict(pair), section(`${pair.b} compared with ${pair.a}`, figures(pair), differences(pair))]),
    section('Charts', h('div', { class: 'charts' }, charts.map((chart) => chart.element))),
    section('Runs', table(['group', 'run', 'started', 'verdict'], page.runs.map((run, idx) => [nameOf(page, idx), run.name, moment(run.started_at), h('span', { class: `tone ${TONES[run.status]}` }, run.status)]), 0)),
    h('p', { class: 'note' }, 'Each run counts once, regardless of how many requests it made. Changes are ratios of geometric means (differences for percentages) with a bootstrap-t interval; p is from a permutation test over runs, adjusted for all metrics; effect is Cliff’s delta, −1 to 1; noise is the difference between groups of these sizes that chance alone produces.'));
  onTheme(() => charts.forEach((chart) => chart.redraw()));
}

function verdict(pair: Pair): HTMLElement {
  return h('div', { class: `verdict ${OUTCOMES[pair.outcome]}`, role: 'status', style: 'margin-top: 16px' }, h('p', {}, h('strong', {}, pair.headline)), pair.notes.length > 0 ? h('ul', {}, pair.notes.map((note) => h('li', {}, note))) : null);
}

function figures(pair: Pair): HTMLElement {
  const rows = pair.findings.map((finding) => [
    finding.metric, h('span', { class: `tone ${OUTCOMES[finding.outcome]}` }, finding.words), interval(finding, pair.findings),
    format.inUnit(mean(finding.a), finding.unit), format.inUnit(mean(finding.b), finding.unit), changeWords(finding),
    finding.p === null ? '–' : finding.p < 0.001 ? '< 0.001' : finding.p.toFixed(3), finding.effect === null ? '–' : finding.effect.toFixed(2), finding.noise === null ? '–' : `± ${format.percent(finding.noise)}`]);
  return table(['figure', 'finding', 'change', pair.a, pair.b, 'change (95 %)', 'p', 'effect', 'noise'], rows, 6);
}

function differences(pair: Pair): Node | string {
  return pair.differences.length === 0 ? '' : fold('differences between the plans', () => h('ul', {}, pair.differences.map((line) => h('li', {}, h('code', {}, line)))));
}

/** A change as a share, around zero. */
function change({ ratio, difference }: Finding): Estimate | null {
  const origin = ratio ? 1 : 0;
  const range = ratio ?? difference;
  return range && { low: range.low - origin, value: range.value - origin, high: range.high - origin };
}

function changeWords(finding: Finding): string {
  const range = change(finding);
  return range ? `${signed(range.value)} (${signed(range.low)} to ${signed(range.high)})` : '–';
}

const signed = (share: number) => `${share < 0 ? '−' : '+'}${format.percent(Math.abs(share))}`;

const mean = (values: number[]) => (values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length);

/** The interval around no change, all on the same scale; the grey band is the noise floor. */
function interval(finding: Finding, all: Finding[]): SVGElement | string {
  const range = change(finding);
  if (range === null) return '';
  const reach = Math.min(2, 1.1 * Math.max(0.02, ...all.flatMap((one) => [Math.abs(change(one)?.low ?? 0), Math.abs(change(one)?.high ?? 0), one.noise ?? 0])));
  const x = (share: number) => 95 + 90 * Math.max(-1, Math.min(1, share / reach));
  const { low, value, high } = range;
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const add = (name: string, attributes: Record<string, string | number>) => {
    const element = document.createElementNS(svg.namespaceURI!, name);
    Object.entries(attributes).forEach(([key, part]) => element.setAttribute(key, String(part)));
    svg.append(element);
  };
  svg.setAttribute('class', `interval ${OUTCOMES[finding.outcome]}`);
  svg.setAttribute('viewBox', '0 0 190 22');
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', changeWords(finding));
  if (finding.noise) add('rect', { class: 'band', x: x(-finding.noise), y: 2, width: x(finding.noise) - x(-finding.noise), height: 18 });
  add('path', { class: 'axis', d: 'M5 11H185' });
  add('path', { class: 'zero', d: 'M95 1V21' });
  add('path', { class: 'range', d: `M${x(low)} 11H${x(high)}` });
  add('circle', { class: 'dot', cx: x(value), cy: 11, r: 4.5 });
  return svg;
}

/** `a 2`: the second run of group a; the table below has its full name. */
function nameOf(page: ComparePage, idx: number): string {
  const { group } = page.runs[idx]!;
  return `${group} ${page.runs.slice(0, idx + 1).filter((run) => run.group === group).length}`;
}

/** A colour for each group; runs of a group differ by dash. */
function look(page: ComparePage, idx: number): Pick<Line, 'color' | 'dash' | 'width'> {
  const run = page.runs[idx]!;
  const nth = page.runs.slice(0, idx).filter((other) => other.group === run.group).length;
  const groups = [...new Set(page.runs.map((one) => one.group))];
  return { color: `c${(groups.indexOf(run.group) % 8) + 1}`, width: 1.25, ...(nth > 0 ? { dash: [2 + nth * 2, 3] } : {}) };
}

function curves(page: ComparePage): Chart {
  const x = [...new Set(page.runs.flatMap((run) => run.curve.points.map(([nines]) => nines)))].sort((p, q) => p - q);
  const lines = page.runs.map((run, idx): Line => {
    const at = new Map(run.curve.points);
    return { name: nameOf(page, idx), values: x.map((nines) => at.get(nines) ?? null), ...look(page, idx) };
  });
  return new Chart({ title: 'Latency by percentile', note: 'Each line is a run; each colour is a group.', unit: 'us', x, lines, log: true }, NINES);
}

function overTime(page: ComparePage, title: string, figure: 'rate' | 'p50' | 'p99', unit: string, log: boolean): Chart {
  const x = [...new Set(page.runs.flatMap((run) => run.series.x))].sort((p, q) => p - q);
  const lines = page.runs.map((run, idx): Line => {
    const at = new Map(run.series.x.map((time, point) => [time, run.series[figure][point] ?? null]));
    return { name: nameOf(page, idx), values: x.map((time) => at.get(time) ?? null), ...look(page, idx) };
  });
  return new Chart({ title, unit, x, lines, ...(log ? { log: false } : {}) }, { ...TIME });
}
