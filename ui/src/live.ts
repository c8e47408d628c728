// A run under way: the page asks for nothing but `/events` (and `/stop`) of the program that serves it.

import type { LiveUpdate, Point, RunPage } from './data';
import { h } from './dom';
import * as format from './format';
import { RunView } from './pages/run';

export function follow(host: HTMLElement): void {
  const dot = h('span', { class: 'live-dot' });
  const words = h('span', { id: 'live-state' }, 'connecting');
  const bar = h('progress', { max: '1', 'aria-label': 'progress of the run' });
  const stop = h('button', { type: 'button', class: 'stop', id: 'stop', click: () => void askToStop(stop) }, 'Stop');
  const state = h('span', { role: 'status' }, dot, words);
  host.replaceChildren(h('p', { class: 'muted' }, 'Waiting for the first second of the run.'));
  let view: RunView | undefined;
  let points: Point[] = [];
  let generation = -1;
  let isOver = false;

  const events = new EventSource('/events');
  events.onmessage = (event) => {
    const update = JSON.parse(event.data as string) as LiveUpdate;
    if (update.generation !== generation) points = [];
    generation = update.generation;
    points = [...points.slice(0, update.from), ...update.points];
    const page: RunPage = { ...update.page, series: { columns: update.page.series.columns, points } };
    if (view) view.update(page);
    else view = new RunView(host, page, [state, bar, stop]);
    isOver = update.state === 'ended';
    dot.className = isOver ? 'live-dot done' : 'live-dot';
    words.textContent = isOver ? 'ended' : `${update.state === 'draining' ? 'finishing open requests' : 'running'} ${format.clock(update.elapsed_s)}${update.goal_s === null ? '' : ` of ${format.clock(update.goal_s)}`}`;
    if (update.goal_s === null) bar.removeAttribute('value');
    else bar.value = Math.min(1, update.elapsed_s / Math.max(update.goal_s, 0.001));
    if (update.state !== 'running') stop.textContent = 'Stop at once';
    if (isOver) { events.close(); stop.remove(); bar.remove(); }
  };
  // The browser reconnects automatically, and is then sent everything from the start.
  events.onerror = () => {
    if (isOver) return;
    dot.className = 'live-dot off';
    words.textContent = view ? 'connection lost, trying again' : 'no connection, trying again';
  };
}

async function askToStop(button: HTMLButtonElement): Promise<void> {
  button.disabled = true;
  try { await fetch('/stop', { method: 'POST', headers: { 'X-Squall': 'stop' } }); } finally { button.disabled = false; }
}
