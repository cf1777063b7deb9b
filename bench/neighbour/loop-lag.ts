import { setTimeout as pause } from 'node:timers/promises';

const MAX = /^nodejs_eventloop_lag_max_seconds(?:\{[^}]*\})? (\S+)$/m;
/** The metric counts the whole time between two looks, which is so long when nothing is late. */
const BETWEEN_LOOKS = 10;
const EVERY = 1_000;

export interface Lateness {
  /** Milliseconds that the event loop was late at most. */
  most: number;
  /** Seconds in which it was late by more than 100 ms. */
  lateSeconds: number;
}

/** Reads once a second how late the event loop of a process was, from its metrics. Each reading begins a new maximum. */
export function watchLoop(metricsPort: number) {
  const seen: number[] = [];
  const look = async () => {
    const text = await fetch(`http://127.0.0.1:${metricsPort}/metrics`).then((answer) => answer.text());
    return Number(MAX.exec(text)?.[1]) * 1000 - BETWEEN_LOOKS;
  };
  let isOver = false;
  const watching = (async () => {
    // What was before this does not count.
    await look();
    while (!isOver) {
      await pause(EVERY);
      seen.push(await look());
    }
  })();
  return {
    async end(): Promise<Lateness> {
      isOver = true;
      await watching;
      return { most: Math.max(...seen), lateSeconds: seen.filter((late) => late > 100).length };
    },
  };
}
