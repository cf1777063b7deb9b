/** Work that pauses after each of its steps, so that whoever does it can let others have their turn. */
export type Steps<T> = Generator<void, T>;

/** Does the work in one go. */
export function inOneGo<T>(work: Steps<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

/** Does the work, and after each step waits if `rest` says so. */
export async function inSteps<T>(work: Steps<T>, rest: () => Promise<void> | undefined): Promise<T> {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    const resting = rest();
    if (resting) await resting;
  }
}
