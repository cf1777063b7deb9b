// A process that takes CPU time and does not talk to Sluice: what a full machine does to the probe by itself.
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { task, timeIsOver } from './http.ts';

export interface BusyTask {
  /** The share of one core that is taken, at most 1. */
  share: number;
}

const SLICE = 5;
const { share } = task<BusyTask>();
const over = timeIsOver();
const start = process.cpuUsage();
const begin = performance.now();
let sum = 0;
while (!over.aborted) {
  const { user, system } = process.cpuUsage(start);
  // Whoever got less than the share catches up.
  if ((user + system) / 1000 < (performance.now() - begin) * share) {
    for (const until = performance.now() + SLICE; performance.now() < until; ) sum += Math.sqrt(sum + 1);
    // The end of its time is heard between slices only.
    await nextTurn();
  } else await pause(SLICE);
}
console.log(JSON.stringify({ sum }));
