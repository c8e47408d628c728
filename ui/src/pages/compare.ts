// Two groups of runs: what changed, how sure that is, and all runs laid over each other.

import { Chart, NINES, TIME, type Line } from '../chart';
import type { ComparePage, Finding } from '../data';
import { h, section, table } from '../dom';
import * as format from '../format';
import { head, moment, onTheme, TONES } from '../parts';

const OUTCOMES: Record<Finding['outcome'], string> = { better: 'good', worse: 'bad', same: 'plain', unknown: 'suspect' };

export function showCompare(host: HTMLElement, page: ComparePage): void {
  const tone = OUTCOMES[page.outcome as Finding['outcome']] ?? 'plain';
  const charts = [curves(page), overTime(page, 'Rate', 'rate', 'per_second', false), overTime(page, 'Median latency', 'p50', 'us', true), overTime(page, '99th percentile', 'p99', 'us', true)];
  charts[0]!.element.classList.add('wide');
  const change = ({ ratio }: Finding) => (ratio === null ? '–' : `${percentOff(ratio.value)} (${percentOff(ratio.low)} to ${percentOff(ratio.high)})`);
  const rows = page.findings.map((finding) => [
    finding.metric, h('span', { class: `tone ${OUTCOMES[finding.outcome]}` }, finding.words), interval(finding, page.findings),
    format.inUnit(median(finding.a), finding.unit), format.inUnit(median(finding.b), finding.unit), change(finding),
    finding.p === null ? '–' : finding.p < 0.001 ? '< 0.001' : finding.p.toFixed(3), finding.effect === null ? '–' : finding.effect.toFixed(2), finding.noise === null ? '–' : `± ${format.percent(finding.noise)}`]);
  const [a, b] = page.groups as [string, string];
  host.replaceChildren(
    head(page.title, `${page.runs.filter((run) => run.group === a).length} runs of ${a} against ${page.runs.filter((run) => run.group === b).length} of ${b}`),
    h('div', { class: `verdict ${tone}`, role: 'status' }, h('p', {}, h('strong', {}, page.headline)), page.notes.length > 0 ? h('ul', {}, page.notes.map((note) => h('li', {}, note))) : null),
    section('Figures', table(['figure', 'finding', `${b} against ${a}`, a, b, 'change (95 %)', 'p', 'effect', 'noise'], rows, 6),
      h('p', { class: 'note' }, 'A run is the unit: each counts once, however many requests it made. The change is the ratio of medians with a bootstrap interval, p is of a permutation test over runs, effect is Cliff’s delta (−1 to 1), noise is how far runs of the same kind lie apart.')),
    section('Charts', h('div', { class: 'charts' }, charts.map((chart) => chart.element))),
    section('Runs', table(['group', 'run', 'started', 'verdict'], page.runs.map((run) => [run.group, run.name, moment(run.started_at), h('span', { class: `tone ${TONES[run.status]}` }, run.status)]), 0)),
    page.differences.length > 0 ? section('What differs between the plans', h('ul', {}, page.differences.map((line) => h('li', {}, h('code', {}, line))))) : '');
  onTheme(() => charts.forEach((chart) => chart.redraw()));
}

const percentOff = (ratio: number) => `${ratio >= 1 ? '+' : '−'}${format.percent(Math.abs(ratio - 1))}`;

const median = (values: number[]) => {
  const sorted = [...values].sort((x, y) => x - y);
  return sorted.length === 0 ? null : (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2;
};

/** The interval around no change, all on the same scale; the grey band is the noise floor. */
function interval(finding: Finding, all: Finding[]): SVGElement | string {
  if (finding.ratio === null) return '';
  const reach = Math.min(2, 1.1 * Math.max(0.02, ...all.flatMap(({ ratio, noise }) => [Math.abs((ratio?.low ?? 1) - 1), Math.abs((ratio?.high ?? 1) - 1), noise ?? 0])));
  const x = (ratio: number) => 95 + 90 * Math.max(-1, Math.min(1, (ratio - 1) / reach));
  const { low, value, high } = finding.ratio;
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const add = (name: string, attributes: Record<string, string | number>) => {
    const element = document.createElementNS(svg.namespaceURI!, name);
    Object.entries(attributes).forEach(([key, part]) => element.setAttribute(key, String(part)));
    svg.append(element);
  };
  svg.setAttribute('class', `interval ${OUTCOMES[finding.outcome]}`);
  svg.setAttribute('viewBox', '0 0 190 22');
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', `${percentOff(value)}, between ${percentOff(low)} and ${percentOff(high)}`);
  if (finding.noise) add('rect', { class: 'band', x: x(1 - finding.noise), y: 2, width: x(1 + finding.noise) - x(1 - finding.noise), height: 18 });
  add('path', { class: 'axis', d: 'M5 11H185' });
  add('path', { class: 'zero', d: 'M95 1V21' });
  add('path', { class: 'range', d: `M${x(low)} 11H${x(high)}` });
  add('circle', { class: 'dot', cx: x(value), cy: 11, r: 4.5 });
  return svg;
}

/** A colour for each group; runs of a group differ by dash. */
function look(page: ComparePage, idx: number): Pick<Line, 'color' | 'dash' | 'width'> {
  const run = page.runs[idx]!;
  const nth = page.runs.slice(0, idx).filter((other) => other.group === run.group).length;
  return { color: run.group === page.groups[0] ? 'c1' : 'c2', width: 1.25, ...(nth > 0 ? { dash: [2 + nth * 2, 3] } : {}) };
}

function curves(page: ComparePage): Chart {
  const x = [...new Set(page.runs.flatMap((run) => run.curve.points.map(([nines]) => nines)))].sort((p, q) => p - q);
  const lines = page.runs.map((run, idx): Line => {
    const at = new Map(run.curve.points);
    return { name: `${run.group} ${run.name}`, values: x.map((nines) => at.get(nines) ?? null), ...look(page, idx) };
  });
  return new Chart({ title: 'Latency by percentile', note: 'Every run is a line, a colour is a group.', unit: 'us', x, lines, log: true }, NINES);
}

function overTime(page: ComparePage, title: string, figure: 'rate' | 'p50' | 'p99', unit: string, log: boolean): Chart {
  const x = [...new Set(page.runs.flatMap((run) => run.series.x))].sort((p, q) => p - q);
  const lines = page.runs.map((run, idx): Line => {
    const at = new Map(run.series.x.map((time, point) => [time, run.series[figure][point] ?? null]));
    return { name: `${run.group} ${run.name}`, values: x.map((time) => at.get(time) ?? null), ...look(page, idx) };
  });
  return new Chart({ title, unit, x, lines, ...(log ? { log: false } : {}) }, { ...TIME });
}
