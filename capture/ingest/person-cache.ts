import type { StoredPerson } from '../persons/people.ts';

/** About what a person takes besides its properties. */
const OVERHEAD = 400;
/** Properties stand there as text and as values. */
const BYTES_PER_CHARACTER = 4;

/**
 * Persons as they were last seen, by their distinct_ids. Never trusted by itself: each is offered to Postgres with
 * its version, which saves sending and parsing its properties when nothing has changed. Bounded: when the younger
 * half is full, the older one is dropped.
 */
export class PersonCache {
  readonly #half: number;
  #bytes = 0;
  #young = new Map<string, StoredPerson>();
  #old = new Map<string, StoredPerson>();

  constructor(mostBytes: number) {
    this.#half = mostBytes / 2;
  }

  get(key: string): StoredPerson | undefined {
    const young = this.#young.get(key);
    if (young) return young;
    const old = this.#old.get(key);
    if (old) this.set(key, old);
    return old;
  }

  set(key: string, person: StoredPerson): void {
    if (!this.#young.has(key)) this.#bytes += OVERHEAD + person.text.length * BYTES_PER_CHARACTER;
    this.#young.set(key, person);
    if (this.#bytes < this.#half) return;
    this.#old = this.#young;
    this.#young = new Map();
    this.#bytes = 0;
  }
}
