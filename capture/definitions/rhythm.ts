/** At most so many events are passed over before one is looked at. */
const MOST_PASSED = 15;
/** An event is not passed over if the last look was so many milliseconds ago. */
const SELDOM = 1_000;

/**
 * Decides which events of one name are looked at: all as long as they show new names, then fewer and fewer, down to one of sixteen,
 * but one a second at least. Going through the properties of an event costs about a microsecond, which is much where storing it
 * costs seven.
 */
export class LookRhythm {
  #pass = 0;
  #passed = 0;
  #lookedAt = 0;

  /** Answers whether to look at the next event. */
  isDue(now: number): boolean {
    if (this.#passed >= this.#pass || now - this.#lookedAt >= SELDOM) return true;
    this.#passed += 1;
    return false;
  }

  /** Learns how many new names a look has found. */
  found(news: number, now: number): void {
    this.#lookedAt = now;
    this.#passed = 0;
    this.#pass = news > 0 ? 0 : Math.min(this.#pass * 2 + 1, MOST_PASSED);
  }
}
