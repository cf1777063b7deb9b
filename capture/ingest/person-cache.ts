import type { StoredPerson } from '../persons/people.ts';

/** About what a person takes besides its properties. */
const OVERHEAD = 300;
/** Properties stand there as text and as values. */
const BYTES_PER_CHARACTER = 3;

const sizeOf = (person: StoredPerson) => OVERHEAD + person.text.length * BYTES_PER_CHARACTER;

/**
 * Persons as they were last seen, by their distinct_ids. Never trusted by itself: each is offered to Postgres with
 * its version, which saves sending and parsing its properties when nothing has changed. Bounded: who was not asked
 * for the longest is dropped first.
 */
export class PersonCache {
  readonly #mostBytes: number;
  #bytes = 0;
  /** The longest unused first: maps keep their order. */
  readonly #persons = new Map<string, StoredPerson>();

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  get(key: string): StoredPerson | undefined {
    return this.#persons.get(key);
  }

  /** Also says that the person was used. */
  set(key: string, person: StoredPerson): void {
    const known = this.#persons.get(key);
    if (known) {
      this.#bytes -= sizeOf(known);
      this.#persons.delete(key);
    }
    this.#bytes += sizeOf(person);
    this.#persons.set(key, person);
    while (this.#bytes > this.#mostBytes) {
      const [oldest, dropped] = this.#persons.entries().next().value as [string, StoredPerson];
      this.#bytes -= sizeOf(dropped);
      this.#persons.delete(oldest);
    }
  }
}
