// Streams that are read.
import { check } from 'k6';
import { ReadableStream, CountQueuingStrategy } from 'k6/experimental/streams';
import { setTimeout } from 'k6/timers';
export const options = { vus: 2, iterations: 2 };
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const all = async (stream) => {
  const reader = stream.getReader(), chunks = [];
  for (let step; !(step = await reader.read()).done;) chunks.push(step.value);
  return chunks.join();
};
const failure = async (make) => { try { await make(); } catch (error) { return `${error.name ?? error}`; } };
export default async function () {
  let count = 0, cancelled;
  const pushed = new ReadableStream({ async start(controller) { for (const chunk of 'abc') { await pause(2); controller.enqueue(chunk); } controller.close(); } });
  const pulled = new ReadableStream({ async pull(controller) { await pause(1); controller.enqueue(++count); if (count === 4) controller.close(); } }, new CountQueuingStrategy({ highWaterMark: 2 }));
  const dropped = new ReadableStream({ cancel(reason) { cancelled = reason; } });
  const broken = new ReadableStream({ pull() { throw new RangeError('broken'); } });
  const texts = [await all(pushed), await all(pulled)];
  const reader = dropped.getReader();
  const locked = [dropped.locked, await failure(() => dropped.cancel())];
  const pending = reader.read();
  await reader.cancel('enough');
  const ended = (await pending).done;
  reader.releaseLock();
  const errors = [await failure(() => all(broken)), await failure(() => reader.read()), await failure(() => new ReadableStream({ start: 1 }))];
  let sized;
  new ReadableStream({ start(controller) { controller.enqueue('abc'); sized = controller.desiredSize; } }, { highWaterMark: 5, size: (chunk) => chunk.length });
  check(null, {
    pushed: () => texts[0] === 'a,b,c',
    pulled: () => texts[1] === '1,2,3,4',
    locked: () => locked.join() === 'true,TypeError' && !dropped.locked,
    cancelled: () => cancelled === 'enough' && ended,
    errors: () => errors.join() === 'RangeError,TypeError,TypeError',
    sized: () => sized === 2,
  });
}
