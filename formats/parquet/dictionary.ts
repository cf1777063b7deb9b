import type { Kernel, Region } from '../kernel/kernel.ts';

const LARGEST = 1024 * 1024 - 64;
const MOST_ENTRIES = 65_536;
/** Fewer values say nothing about a column. */
const ENOUGH = 1024;

/** The distinct values of a column in a row group, as long as they are few. */
export class Dictionary {
  readonly #kernel: Kernel;
  readonly #index: number;
  #table: Region;
  #entries: Region;
  #offsets: Region;
  #limit = 256;

  constructor(kernel: Kernel, index: number) {
    this.#kernel = kernel;
    this.#index = index;
    this.#table = kernel.allocate(this.#limit * 16);
    this.#entries = kernel.allocate(8 * 1024);
    this.#offsets = kernel.allocate(this.#limit * 4);
    kernel.set(index, 'hasDictionary', 1);
    kernel.set(index, 'entriesUsed', 0);
    kernel.set(index, 'entryCount', 0);
    this.#describe();
  }

  get count(): number {
    return this.#kernel.get(this.#index, 'entryCount');
  }

  /** How many bits an index into the dictionary takes. */
  get width(): number {
    return Math.max(1, 32 - Math.clz32(this.count - 1));
  }

  /**
   * Makes room for an entry of this size. Returns false if the values so far suggest that a dictionary does not pay.
   */
  grow(size: number, seen: number): boolean {
    const { count } = this;
    const used = this.#kernel.get(this.#index, 'entriesUsed');
    if (seen >= ENOUGH) {
      const expected = estimateDistinct(seen, count);
      if (expected > MOST_ENTRIES || (expected * used) / count > LARGEST) return false;
    }
    if (count === this.#limit) {
      if (this.#limit * 2 > MOST_ENTRIES) return false;
      this.#limit *= 2;
      this.#kernel.free(this.#table);
      this.#table = this.#kernel.allocate(this.#limit * 16);
      this.#offsets = this.#kernel.grow(this.#offsets, this.#limit * 4, count * 4);
    } else {
      if (used + size > LARGEST) return false;
      this.#entries = this.#kernel.grow(this.#entries, Math.max(used + size, this.#entries.size * 2), used);
    }
    this.#describe();
    return true;
  }

  /** The entries as their page holds them, in a buffer from `take`. */
  read(take: (length: number) => Buffer): Buffer {
    const used = this.#kernel.get(this.#index, 'entriesUsed');
    const page = take(used);
    page.set(this.#kernel.bytes.subarray(this.#entries.at, this.#entries.at + used));
    return page;
  }

  /** Frees its memory. */
  free(): void {
    for (const region of [this.#table, this.#entries, this.#offsets]) this.#kernel.free(region);
    this.#kernel.set(this.#index, 'hasDictionary', 0);
  }

  #describe(): void {
    const set = (field: Parameters<Kernel['set']>[1], value: number) =>
      this.#kernel.set(this.#index, field, value);
    set('table', this.#table.at);
    set('tableMask', this.#limit * 2 - 1);
    set('entries', this.#entries.at);
    set('entriesRoom', Math.min(this.#entries.size, LARGEST));
    set('offsets', this.#offsets.at);
    set('entryLimit', this.#limit);
    this.#kernel.run.rehash(this.#kernel.columnAt(this.#index));
  }
}

/** Estimates how many distinct values there are in total, if all are equally frequent. */
function estimateDistinct(seen: number, distinct: number): number {
  if (distinct >= seen) return Number.POSITIVE_INFINITY;
  let all = seen ** 2 / (2 * (seen - distinct));
  for (let round = 0; round < 20; round += 1) all = distinct / (1 - Math.exp(-seen / all));
  return all;
}
