// Work that is too long for one turn of the event loop is done in pieces, with `nextTurn` between them.

/** Pieces that took fewer milliseconds together need no rest after them. */
const SHORT = 5;
const LONGEST_REST = 100;

const waiting: (() => void)[] = [];
let isWorking = false;
let arrived = 0;
let answeredTo = 0;
/** For how many milliseconds work was done since the last rest. */
let worked = 0;

/** Says that a request has arrived for which long work should make way. */
export function requestArrived(): void {
  arrived += 1;
}

/**
 * Resolves when the next piece of long work may be done. There is one piece at a time in the whole process. If requests
 * arrived meanwhile, the next one begins after a rest that is as long as the work was, so that requests have half of the
 * time, whatever comes in large bodies.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (!isWorking) setImmediate(work);
    isWorking = true;
  });
}

/** How many milliseconds of a turn a piece of long work takes, where nobody knows the length of its steps beforehand. */
const PIECE = 4;

/** Returns what such work asks after each of its steps: it waits if there is a promise. */
export function pacing(): () => Promise<void> | undefined {
  let began = performance.now();
  const rest = async () => {
    await nextTurn();
    began = performance.now();
  };
  return () => (performance.now() - began > PIECE ? rest() : undefined);
}

/** Makes something of each item. Where that takes long, others have their turn between the items. */
export async function mapInTurns<T, R>(items: readonly T[], make: (item: T) => R): Promise<R[]> {
  const pace = pacing();
  const made: R[] = [];
  for (const item of items) {
    made.push(make(item));
    const rested = pace();
    if (rested) await rested;
  }
  return made;
}

/** Does something with each item. After every `most` items, others have their turn. Few items take no promise. */
export function eachInTurns<T>(
  items: readonly T[],
  most: number,
  each: (item: T, index: number) => void,
): void | Promise<void> {
  const slice = (from: number): number => {
    const to = Math.min(from + most, items.length);
    for (let at = from; at < to; at += 1) each(items[at] as T, at);
    return to;
  };
  const rest = async (from: number) => {
    for (let at = from; at < items.length; at = slice(at)) await nextTurn();
  };
  const at = slice(0);
  if (at < items.length) return rest(at);
}

function work(): void {
  const next = waiting.shift();
  if (!next) {
    isWorking = false;
    return;
  }
  const began = performance.now();
  next();
  // Before this comes what has arrived meanwhile.
  setImmediate(() => {
    worked += performance.now() - began;
    if (worked < SHORT) return work();
    const rest = arrived === answeredTo ? 0 : Math.min(worked, LONGEST_REST);
    answeredTo = arrived;
    worked = 0;
    if (rest > 0) setTimeout(work, rest);
    else work();
  });
}
