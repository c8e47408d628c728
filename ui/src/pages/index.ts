// All saved runs of a folder, the newest first, each with a link to its page.

import type { IndexPage } from '../data';
import { h, section, table } from '../dom';
import * as format from '../format';
import { head, moment, TONES } from '../parts';

export function showIndex(host: HTMLElement, page: IndexPage): void {
  const list = h('div');
  const search = h('input', { type: 'search', placeholder: 'filter by name', 'aria-label': 'filter by name', input: () => draw() });
  const draw = () => {
    const shown = page.runs.filter((run) => run.name.toLowerCase().includes(search.value.toLowerCase()));
    list.replaceChildren(table(['run', 'started', 'verdict', 'thresholds', 'for', 'rate', 'failed', 'p50', 'p99'], shown.map((run) => [
      h('a', { href: run.href }, run.name), moment(run.started_at), h('span', { class: `tone ${TONES[run.status]}` }, run.status), run.thresholds,
      format.span(run.duration_s), format.rate(run.rate_per_s), format.count(run.failed), format.time(run.p50_us), format.time(run.p99_us)]), 5));
  };
  draw();
  host.replaceChildren(head(page.title, `${page.runs.length} saved runs`), section('Runs', h('div', { class: 'filters' }, search), list));
}
