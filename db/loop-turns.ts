// Work that is too long for one turn of the event loop is done in pieces, with `nextTurn` between them.

/** A piece that took fewer milliseconds needs no rest after it. */
const SHORT = 5;
const LONGEST_REST = 100;

const waiting: (() => void)[] = [];
let isWorking = false;
let arrived = 0;
let answeredTo = 0;

/** Says that a request has arrived for which long work should make way. */
export function requestArrived(): void {
  arrived += 1;
}

/**
 * Resolves when the next piece of long work may be done. There is one piece at a time in the whole process. If requests
 * arrived during a piece, the next one begins after a rest that is as long as the piece was, so that requests have half
 * of the time, whatever comes in large bodies.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (!isWorking) setImmediate(work);
    isWorking = true;
  });
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
    const took = performance.now() - began;
    const isWaitedFor = arrived !== answeredTo;
    answeredTo = arrived;
    if (took < SHORT || !isWaitedFor) work();
    else setTimeout(work, Math.min(took, LONGEST_REST));
  });
}
