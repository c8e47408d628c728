// Chooses what to show by the kind of the data in the page.

import 'uplot/dist/uPlot.min.css';
import './style.css';
import type { Page } from './data';
import { follow } from './live';
import { initTheme } from './parts';
import { showCapacity } from './pages/capacity';
import { showCompare } from './pages/compare';
import { showIndex } from './pages/index';
import { RunView } from './pages/run';
import { showSweep } from './pages/sweep';

const host = document.getElementById('page')!;
const page = JSON.parse(document.getElementById('data')!.textContent!) as Page;
initTheme();
switch (page.kind) {
  case 'run': new RunView(host, page); break;
  case 'compare': showCompare(host, page); break;
  case 'sweep': showSweep(host, page); break;
  case 'capacity': showCapacity(host, page); break;
  case 'index': showIndex(host, page); break;
  case 'live': follow(host); break;
}
