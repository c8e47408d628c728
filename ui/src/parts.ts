// Blocks that several pages share: the head, the verdict, tiles, tables of thresholds and rows.

import { h, table } from './dom';
import * as format from './format';
import type { Distribution, Status, Threshold } from './data';

export const TONES: Record<Status, string> = { VALID: 'good', SUSPECT: 'suspect', INVALID: 'bad' };

export function head(title: string, line: string, ...tools: (Node | null)[]): HTMLElement {
  return h('header', { class: 'top' }, h('div', {}, h('h1', {}, title), h('p', {}, line)), h('div', { class: 'tools' }, ...tools, themeButton(), h('button', { type: 'button', click: () => window.print() }, 'Print')));
}

/** Light, dark, or as the system has it; remembered where the browser allows a file to. */
function themeButton(): HTMLElement {
  const button = h('button', { type: 'button', id: 'theme', click: () => setTheme(isDark() ? 'light' : 'dark') });
  const name = () => { button.textContent = isDark() ? 'Light' : 'Dark'; };
  themeListeners.push(name);
  name();
  return button;
}

const themeListeners: (() => void)[] = [];

export function onTheme(listener: () => void): void { themeListeners.push(listener); }

export function isDark(): boolean { return document.documentElement.dataset['theme'] === 'dark'; }

export function setTheme(theme: 'light' | 'dark', remember = true): void {
  document.documentElement.dataset['theme'] = theme;
  if (remember) try { localStorage.setItem('squall-theme', theme); } catch { /* a file may have no storage */ }
  themeListeners.forEach((listener) => listener());
}

export function initTheme(): void {
  const system = matchMedia('(prefers-color-scheme: dark)');
  let stored: string | null = null;
  try { stored = localStorage.getItem('squall-theme'); } catch { /* a file may have no storage */ }
  const fromSystem = () => setTheme(system.matches ? 'dark' : 'light', false);
  if (stored === 'dark' || stored === 'light') setTheme(stored, false);
  else { fromSystem(); system.addEventListener('change', fromSystem); }
  // Paper is white.
  let before: 'light' | 'dark' = 'light';
  addEventListener('beforeprint', () => { before = isDark() ? 'dark' : 'light'; setTheme('light', false); });
  addEventListener('afterprint', () => setTheme(before, false));
}

export function tile(name: string, value: string, detail = ''): HTMLElement {
  return h('div', { class: 'tile' }, h('span', {}, name), h('b', {}, value), detail ? h('small', {}, detail) : null);
}

/** A bar from zero to the limit and beyond, with the limit marked; the words say the same. */
function marginBar({ actual, limit, ok }: Threshold): HTMLElement | string {
  if (actual === null || limit <= 0) return '';
  const whole = Math.max(actual, limit) * 1.15;
  const bar = h('span', { class: `margin ${ok ? 'good' : 'bad'}`, 'aria-hidden': 'true' }, h('i'), h('u'));
  (bar.children[0] as HTMLElement).style.width = `${(actual / whole) * 100}%`;
  (bar.children[1] as HTMLElement).style.left = `${(limit / whole) * 100}%`;
  return bar;
}

/** `names`: each with what it is about. */
export function thresholds(list: Threshold[], names: string[]): HTMLElement {
  const rows = list.map((one, idx) => [
    h('span', { class: `tone ${one.ok ? 'good' : 'bad'}` }, one.ok ? '✓ met' : '✗ missed'),
    h('code', {}, names[idx] ?? one.rule),
    marginBar(one),
    format.inUnit(one.actual, one.unit),
    format.inUnit(one.limit, one.unit),
    one.margin === null ? 'no sample' : `${format.inUnit(Math.abs(one.margin), one.unit)} ${one.margin >= 0 ? 'to spare' : 'over'}`,
  ]);
  return table(['', 'rule', '', 'actual', 'limit', 'margin'], rows, 3);
}

export const TIMES = ['p50', 'p90', 'p99', 'p99.9', 'max'];

export function times(distribution: Distribution): string[] {
  const { p50, p90, p99, p99_9, max } = distribution;
  return [p50, p90, p99, p99_9, max].map(format.time);
}

/** `2026-08-30T14:12:00Z` as a reader's own clock shows it. */
export function moment(text: string): string {
  const date = new Date(text);
  return isNaN(date.getTime()) ? text : `${date.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })}`;
}
