/** For so many milliseconds after a line in the log, further ones of its kind are only counted. */
const QUIET = 1_000;

/** Keeps a log short while the same thing happens all the time: one line a second, which says how many it stands for. */
export class Quiet {
  readonly #now: () => number;
  #until = Number.NEGATIVE_INFINITY;
  #untold = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Calls `write` with the number of lines that were left out since the last one, unless it is too early for a line. */
  tell(write: (untold: number) => void): void {
    const now = this.#now();
    if (now < this.#until) {
      this.#untold += 1;
      return;
    }
    write(this.#untold);
    this.#untold = 0;
    this.#until = now + QUIET;
  }
}
