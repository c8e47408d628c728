// The heat map: how many requests took how long, over time. Drawn below the lines of an ordinary chart.

import type uPlot from 'uplot';
import { faded } from './chart';
import { color } from './dom';
import type { Point } from './data';

/** Four buckets per doubling of nanoseconds, as `crates/report/src/page/columns.rs` counts them; here in microseconds. */
const lowest = (bucket: number) => 2 ** (bucket / 4) / 1e3;

/** The range of all buckets that hold anything, in microseconds. */
export function heatRange(points: Point[]): [number, number] | undefined {
  let [low, high] = [Infinity, -Infinity];
  for (const { h } of points) {
    if (h.length === 0) continue;
    low = Math.min(low, h[0]!);
    high = Math.max(high, h[h.length - 2]!);
  }
  return high >= low ? [lowest(low), lowest(high + 1)] : undefined;
}

/** Draws a cell for each bucket of each point; the colour grows with the logarithm of the count per second. */
export function drawHeat(plot: uPlot, points: Point[], spans: [number, number][]): void {
  const { ctx, bbox } = plot;
  const [from, to] = [plot.scales.x!.min!, plot.scales.x!.max!];
  const density = points.map(({ h }, idx) => h.filter((_, i) => i % 2 === 1).reduce((most, count) => Math.max(most, count), 0) / Math.max(spans[idx]![1] - spans[idx]![0], 0.01));
  const most = Math.log1p(Math.max(...density, 1));
  const tint = color('c1');
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  points.forEach(({ h }, idx) => {
    const [start, end] = spans[idx]!;
    if (end < from || start > to) return;
    const [left, right] = [Math.floor(plot.valToPos(start, 'x', true)), Math.ceil(plot.valToPos(end, 'x', true))];
    for (let i = 0; i < h.length; i += 2) {
      const [bucket, count] = [h[i]!, h[i + 1]!];
      const [bottom, top] = [plot.valToPos(lowest(bucket), 'y', true), plot.valToPos(lowest(bucket + 1), 'y', true)];
      ctx.fillStyle = faded(tint, 0.1 + 0.9 * (Math.log1p(count / Math.max(end - start, 0.01)) / most));
      ctx.fillRect(left, Math.floor(top), Math.max(right - left, 1), Math.ceil(bottom) - Math.floor(top));
    }
  });
  ctx.restore();
}
