import type { Column } from '../columns.ts';
import type { Kernel, Region } from '../kernel/kernel.ts';
import { BOUND_ROOM } from '../kernel/layout.ts';
import { Dictionary } from './dictionary.ts';
import { ENCODING, type Page } from './page.ts';
import { definitionDepth } from './schema.ts';
import { type Bounds, readBounds } from './statistics.ts';

/** A page before its compression. */
export interface RawPage {
  raw: Buffer;
  values: number;
  encoding: number;
  kind: 'data' | 'dictionary';
}

/** The part of one column in a row group. */
export interface Chunk {
  dictionary: Promise<Page> | undefined;
  pages: Promise<Page>[];
  values: number;
  nulls: number;
  encodings: number[];
  bounds: Bounds | undefined;
}

const SMALLEST = 16 * 1024 - 64;
const MOST_LEVELS = 65_536;
/** The types for which a dictionary is tried. For others it never pays. */
const REPEATING = new Set(['string', 'json', 'uuid', 'timestamp', 'int32', 'int64']);
/** After so many row groups with too large a dictionary, the column does without one. */
const ATTEMPTS = 2;

/** The pages of one column. The kernel fills them; this class grows, ends and empties them. */
export class ColumnPages {
  readonly #kernel: Kernel;
  readonly #index: number;
  readonly #column: Column;
  readonly #target: number;
  readonly #take: (length: number) => Buffer;
  readonly #submit: (page: RawPage) => Promise<Page>;
  #values: Region;
  #definitions: Region;
  #repetitions: Region;
  #levelRoom = 1024 - 64;
  #dictionary: Dictionary | undefined;
  #attempts: number;
  #chunk: Omit<Chunk, 'bounds'>;

  constructor(
    kernel: Kernel,
    index: number,
    options: {
      pageBytes: number;
      take: (length: number) => Buffer;
      submit: (page: RawPage) => Promise<Page>;
    },
  ) {
    this.#kernel = kernel;
    this.#index = index;
    this.#column = kernel.columns[index] as Column;
    this.#target = options.pageBytes;
    this.#submit = options.submit;
    this.#take = options.take;
    this.#values = kernel.allocate(Math.min(SMALLEST, this.#target));
    this.#definitions = kernel.allocate(this.#levelRoom);
    this.#repetitions = kernel.allocate(this.#levelRoom);
    this.#attempts = REPEATING.has(this.#column.type) ? ATTEMPTS : 0;
    kernel.set(index, 'boundTexts', kernel.allocate(BOUND_ROOM * 2).at);
    this.#chunk = this.#begin();
  }

  /** The bytes in the page that is being filled. */
  get waiting(): number {
    return this.#kernel.get(this.#index, 'used');
  }

  /** Makes room for a value that did not fit. Returns true if it ended a page for that. */
  makeRoom(bytes: number, levels: number): boolean {
    const used = this.waiting;
    const had = this.#kernel.get(this.#index, 'levels');
    const enough = Math.max(this.#target, bytes);
    if (had > 0 && (used + bytes > this.#target || had + levels > MOST_LEVELS)) {
      this.#endPage();
      return true;
    }
    if (used + bytes > this.#values.size) {
      const size = Math.max(used + bytes, Math.min(enough, this.#values.size * 2));
      this.#values = this.#kernel.grow(this.#values, size, used);
    }
    if (had + levels > this.#levelRoom) {
      this.#levelRoom = Math.max(had + levels, Math.min(MOST_LEVELS, this.#levelRoom * 2));
      this.#definitions = this.#kernel.grow(this.#definitions, this.#levelRoom, had);
      this.#repetitions = this.#kernel.grow(this.#repetitions, this.#levelRoom, had);
    }
    this.#describe();
    return false;
  }

  /** Makes room in the dictionary, or drops it. */
  growDictionary(bytes: number): void {
    const had = this.#kernel.get(this.#index, 'levels') - this.#kernel.get(this.#index, 'nulls');
    const seen = this.#chunk.values - this.#chunk.nulls + had;
    if (this.#dictionary?.grow(bytes, seen)) return;
    this.#attempts -= 1;
    const plain = Number(this.#kernel.run.plainSize(this.#kernel.columnAt(this.#index)));
    // A page that would be too large without the dictionary ends with it.
    if (this.#chunk.pages.length > 0 || plain > 2 * this.#target) this.#endPage();
    else this.#unfold(plain);
    this.#endDictionary();
  }

  /** Ends the column's part of the row group. */
  endChunk(): Chunk {
    if (this.#kernel.get(this.#index, 'levels') > 0) this.#endPage();
    this.#endDictionary();
    const chunk = { ...this.#chunk, bounds: readBounds(this.#kernel, this.#index, this.#column.type) };
    this.#chunk = this.#begin();
    return chunk;
  }

  #begin(): Omit<Chunk, 'bounds'> {
    this.#kernel.set(this.#index, 'bounded', 0);
    if (this.#attempts > 0) this.#dictionary = new Dictionary(this.#kernel, this.#index);
    this.#emptyPage();
    return { dictionary: undefined, pages: [], values: 0, nulls: 0, encodings: [ENCODING.rle] };
  }

  #describe(): void {
    const set = (field: Parameters<Kernel['set']>[1], value: number) =>
      this.#kernel.set(this.#index, field, value);
    set('values', this.#values.at);
    set('room', this.#values.size);
    set('definitions', this.#definitions.at);
    set('repetitions', this.#repetitions.at);
    set('levelRoom', this.#levelRoom);
  }

  #emptyPage(): void {
    for (const field of ['used', 'levels', 'nulls'] as const) this.#kernel.set(this.#index, field, 0);
    // Frees the memory that a very large value needed.
    if (this.#values.size > 2 * this.#target) {
      this.#kernel.free(this.#values);
      this.#values = this.#kernel.allocate(this.#target);
    }
    this.#describe();
  }

  /** Replaces the indexes into the dictionary by the values themselves. */
  #unfold(size: number): void {
    const at = this.#kernel.columnAt(this.#index);
    const values = this.#kernel.allocate(Math.max(size, SMALLEST));
    this.#kernel.run.writePlain(at, values.at);
    this.#kernel.free(this.#values);
    this.#values = values;
    this.#kernel.set(this.#index, 'used', size);
    this.#describe();
  }

  #endDictionary(): void {
    const dictionary = this.#dictionary;
    if (!dictionary) return;
    if (this.#chunk.encodings.includes(ENCODING.dictionary)) {
      const page = { values: dictionary.count, encoding: ENCODING.plain, kind: 'dictionary' } as const;
      this.#chunk.dictionary = this.#submit({ raw: dictionary.read(this.#take), ...page });
    }
    dictionary.free();
    this.#dictionary = undefined;
  }

  #endPage(): void {
    const { run } = this.#kernel;
    const levels = this.#kernel.get(this.#index, 'levels');
    const nulls = this.#kernel.get(this.#index, 'nulls');
    const used = this.waiting;
    // Bit packing takes at most the size of its input and a few bytes: at most 4 times 9 bytes for 8 values.
    const scratch = this.#kernel.allocate(levels * 7 + 256);
    let to = scratch.at;
    const depth = definitionDepth(this.#column);
    if (this.#column.type === 'strings') to = this.#packLevels(this.#repetitions, levels, 1, to);
    if (depth > 0) to = this.#packLevels(this.#definitions, levels, depth === 1 ? 1 : 2, to);
    // A page of nulls needs no dictionary, and an empty dictionary confuses readers.
    const dictionary = this.#dictionary?.count ? this.#dictionary : undefined;
    const encoding = dictionary ? ENCODING.dictionary : ENCODING.plain;
    let values = this.#kernel.bytes.subarray(this.#values.at, this.#values.at + used);
    if (dictionary) {
      this.#kernel.bytes[to] = dictionary.width;
      to = run.packIndices(this.#values.at, used / 4, dictionary.width, to + 1);
      values = values.subarray(0, 0);
    } else if (this.#column.type === 'bool') {
      to = run.packBits(this.#values.at, used, to);
      values = values.subarray(0, 0);
    }
    const front = to - scratch.at;
    const raw = this.#take(front + values.length);
    raw.set(this.#kernel.bytes.subarray(scratch.at, to));
    raw.set(values, front);
    this.#kernel.free(scratch);
    this.#chunk.values += levels;
    this.#chunk.nulls += nulls;
    // The dictionary itself is a plain page.
    for (const one of [encoding, ENCODING.plain])
      if (!this.#chunk.encodings.includes(one)) this.#chunk.encodings.push(one);
    this.#chunk.pages.push(this.#submit({ raw, values: levels, encoding, kind: 'data' }));
    this.#emptyPage();
  }

  /** Writes levels, with their length before them. */
  #packLevels(region: Region, count: number, width: number, to: number): number {
    const end = this.#kernel.run.packLevels(region.at, count, width, to + 4);
    this.#kernel.view.setUint32(to, end - to - 4, true);
    return end;
  }
}
