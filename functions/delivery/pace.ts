/** For how long a function with little to do counts after its last invocation, in milliseconds. */
const AFTER_LAST = 5_000;
/** The distance of two measurements, in milliseconds. */
const EVERY = 50;
/** Which part of its time the thread may be busy while functions with little to do deliver as well. */
const MOST_BUSY = 0.6;

export interface PaceOptions {
  /** Milliseconds of a clock that is never set. */
  now(): number;
  /** For how many milliseconds the thread has been busy since it began. */
  busy(): number;
}

const THREAD: PaceOptions = {
  now: () => performance.now(),
  busy: () => performance.eventLoopUtilization().active,
};

/**
 * Says when functions with much to do have to rest. Each step of an invocation waits until the thread is free, and until a
 * processor is: what has little to do is soon done only where some of that time is left.
 */
export class Pace {
  readonly #options: PaceOptions;
  #last = Number.NEGATIVE_INFINITY;
  #measured: { at: number; busy: number };
  #isBusy = false;

  constructor(options: PaceOptions = THREAD) {
    this.#options = options;
    this.#measured = { at: options.now(), busy: options.busy() };
  }

  /** A function has something to do, and little of it. */
  little(): void {
    this.#last = this.#options.now();
  }

  /** Whether functions with much to do have to rest. Busy time counts where a processor was waited for, too. */
  get mustRest(): boolean {
    const at = this.#options.now();
    if (at - this.#measured.at >= EVERY) {
      const busy = this.#options.busy();
      this.#isBusy = busy - this.#measured.busy > (at - this.#measured.at) * MOST_BUSY;
      this.#measured = { at, busy };
    }
    return this.#isBusy && at - this.#last < AFTER_LAST;
  }
}
