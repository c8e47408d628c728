// The highest load that still meets the objectives: the answer, and every probe that led there.

import { Chart, type XAxis } from '../chart';
import type { CapacityPage } from '../data';
import { h, section, table } from '../dom';
import * as format from '../format';
import { head, onTheme, TONES } from '../parts';

const FIGURES: Record<string, string> = { done_per_s: 'completed per second', failed_share: 'failed', p50_us: 'p50', p99_us: 'p99' };

export function showCapacity(host: HTMLElement, page: CapacityPage): void {
  const axis: XAxis = { label: 'probe', text: (value) => String(Math.round(value)), head: 'probe', splits: (min, max) => Array.from({ length: Math.floor(max) - Math.ceil(min) + 1 }, (_, idx) => Math.ceil(min) + idx) };
  const values = (wanted: boolean | null) => page.probes.map((probe) => (probe.holds === wanted ? probe.rate : null));
  const chart = new Chart({ title: 'Probes', note: 'Raise the rate until the objectives fail, bisect, then repeat probes around the result.', unit: 'per_second', x: page.probes.map((_, idx) => idx + 1), lines: [
    { name: 'all', values: page.probes.map((probe) => probe.rate), color: 'c7', width: 1, dash: [3, 3] },
    { name: 'met', values: values(true), color: 'c1', width: 0, dot: 10 }, { name: 'missed', values: values(false), color: 'c2', width: 0, dot: 10 }, { name: 'did not count', values: values(null), color: 'c5', width: 0, dot: 10 }] }, axis);
  chart.element.classList.add('wide');
  const names = Object.keys(page.probes[0]?.figures ?? {});
  host.replaceChildren(
    head(page.title, `objectives: ${page.slo}`),
    h('div', { class: `verdict ${page.low === null || page.high === null ? 'suspect' : 'good'}`, role: 'status' }, h('p', {}, h('strong', {}, page.answer)), page.limit_words ? h('p', {}, page.limit_words) : null),
    section('Search', h('div', { class: 'charts' }, chart.element)),
    section('Probes', table(['stage', 'outcome', 'verdict', 'rate', ...names.map((name) => FIGURES[name] ?? name)], page.probes.map((probe) => [probe.stage, h('span', { class: `tone ${probe.holds === null ? 'suspect' : probe.holds ? 'good' : 'bad'}` }, probe.words), h('span', { class: `tone ${TONES[probe.status]}` }, probe.status), probe.report ? h('a', { href: probe.report }, format.rate(probe.rate)) : format.rate(probe.rate), ...names.map((name) => (name.endsWith('_us') ? format.time(probe.figures[name]) : name.endsWith('share') ? format.percent(probe.figures[name]) : format.short(probe.figures[name])))]), 1 + names.length)));
  onTheme(() => chart.redraw());
}
