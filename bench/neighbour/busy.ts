// A process that takes CPU time and does not talk to Sluice: what a full machine does to the probe by itself.
import { setTimeout as pause } from 'node:timers/promises';
import { task } from './http.ts';

export interface BusyTask {
  seconds: number;
  /** The share of one core that is taken, at most 1. */
  share: number;
}

const SLICE = 20;
const { seconds, share } = task<BusyTask>();
const start = process.cpuUsage();
const end = performance.now() + seconds * 1000;
const begin = performance.now();
let sum = 0;
while (performance.now() < end) {
  const { user, system } = process.cpuUsage(start);
  // Whoever got less than the share catches up.
  if ((user + system) / 1000 < (performance.now() - begin) * share) {
    for (const until = performance.now() + SLICE / 4; performance.now() < until; ) sum += Math.sqrt(sum + 1);
  } else await pause(SLICE / 4);
}
console.log(JSON.stringify({ sum }));
