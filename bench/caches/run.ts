// `npm run bench -- caches [--names 20000] [--megabytes 64] [--rounds 5]`
// Measures what the cache of persons costs, `lru-cache` beside a Map that is kept in order by deleting and setting. Each name
// is looked up and then stored, as capture does it; frequent names are frequent. `--names 1000000` keeps the cache full.

import { parseArgs } from 'node:util';
import { LRUCache } from 'lru-cache';

interface Person {
  text: string;
}

interface Cache {
  get(key: string): Person | undefined;
  set(key: string, person: Person): void;
}

const { values } = parseArgs({
  options: {
    names: { type: 'string', default: '20000' },
    megabytes: { type: 'string', default: '64' },
    rounds: { type: 'string', default: '5' },
  },
});
const NAMES = Number(values.names);
const BYTES = Number(values.megabytes) * 1024 * 1024;
const LOOKS = 1_000_000;
const TEXT = 'x'.repeat(300);
const sizeOf = (person: Person) => 300 + 3 * person.text.length;

/** The Map: what was used last is at its end. */
class Ordered implements Cache {
  readonly #persons = new Map<string, Person>();
  #bytes = 0;

  get(key: string): Person | undefined {
    return this.#persons.get(key);
  }

  set(key: string, person: Person): void {
    const known = this.#persons.get(key);
    if (known) this.#bytes -= sizeOf(known);
    this.#persons.delete(key);
    this.#persons.set(key, person);
    this.#bytes += sizeOf(person);
    while (this.#bytes > BYTES) {
      const [oldest, dropped] = this.#persons.entries().next().value as [string, Person];
      this.#persons.delete(oldest);
      this.#bytes -= sizeOf(dropped);
    }
  }
}

/** Always the same numbers, from 0 to 1. */
function* numbers(): Generator<number, never> {
  for (let seed = 12345; ; ) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    yield seed / 2 ** 32;
  }
}

/** Returns the processor time of a look, in nanoseconds, when the cache is as full as it gets. */
function measured(cache: Cache): number {
  const random = numbers();
  const look = () => {
    const key = `1:person-${Math.floor(NAMES * random.next().value ** 3)}`;
    cache.set(key, cache.get(key) ?? { text: TEXT });
  };
  for (let index = 0; index < LOOKS / 2; index += 1) look();
  const began = process.cpuUsage();
  for (let index = 0; index < LOOKS; index += 1) look();
  const { user, system } = process.cpuUsage(began);
  return ((user + system) * 1_000) / LOOKS;
}

const library = (): Cache => {
  const cache = new LRUCache<string, Person>({ maxSize: BYTES, sizeCalculation: sizeOf });
  return { get: (key) => cache.peek(key), set: (key, person) => void cache.set(key, person) };
};
const median = (all: number[]) => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)] as number;
const times = { map: [] as number[], library: [] as number[] };
for (let round = 0; round < Number(values.rounds); round += 1) {
  times.map.push(measured(new Ordered()));
  times.library.push(measured(library()));
}
const [map, lru] = [median(times.map), median(times.library)];
console.log(
  `${NAMES} names, ${values.megabytes} MB: Map ${map.toFixed(0)} ns a look, lru-cache ${lru.toFixed(0)} ns, ${(map / lru).toFixed(1)}×`,
);
