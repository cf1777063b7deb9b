import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Column } from '../columns.ts';
import { COLUMN, COLUMN_SIZE, TYPES } from './layout.ts';

/** The exports of formats/kernel/assembly/index.ts. Pointers and sizes are in bytes. */
interface Exports {
  memory: WebAssembly.Memory;
  setColumns(count: number, columns: number, fields: number): void;
  prepareLines(csv: boolean): void;
  jsonLines(at: number, end: number, to: number, limit: number): number;
  csvLines(at: number, end: number, to: number, limit: number): number;
  preparePages(scratch: number): void;
  addRows(at: number, end: number, limit: number): number;
  rehash(column: number): void;
  plainSize(column: number): bigint;
  writePlain(column: number, to: number): number;
  packLevels(from: number, count: number, width: number, to: number): number;
  packIndices(from: number, count: number, width: number, to: number): number;
  packBits(from: number, count: number, to: number): number;
  lz4(from: number, length: number, to: number, table: number): number;
  snappy(from: number, length: number, to: number, table: number): number;
  xxh64(at: number, length: number): bigint;
  addHash(hash: bigint): void;
  written: WebAssembly.Global;
  position: WebAssembly.Global;
  next: WebAssembly.Global;
  needed: WebAssembly.Global;
  neededLevels: WebAssembly.Global;
  rows: WebAssembly.Global;
  hashSum: WebAssembly.Global<bigint>;
  faultReason: WebAssembly.Global;
  faultColumn: WebAssembly.Global;
  faultValue: WebAssembly.Global;
}

/** A part of the kernel's memory. */
export interface Region {
  at: number;
  size: number;
}

/** Every region ends with this margin, because the kernel loads and stores 16 bytes at a time. */
const MARGIN = 64;
const SMALLEST = 1024;
const PAGE = 65_536;

let compiled: WebAssembly.Module | undefined;

/** The inner loops with their memory. Each run has its own kernel, so its memory is freed with the run. */
export class Kernel {
  readonly run: Exports;
  readonly columns: readonly Column[];
  /** The whole memory. It becomes another object whenever the memory grows. */
  bytes: Uint8Array;
  view: DataView;
  #free = new Map<number, number[]>();
  #top: number;
  #columnsAt: number;

  constructor(columns: readonly Column[]) {
    compiled ??= new WebAssembly.Module(readFileSync(path.join(import.meta.dirname, 'kernel.wasm')));
    const float = (value: number, to: number) => this.#writeText(String(value), to);
    const instance = new WebAssembly.Instance(compiled, { text: { float } });
    this.run = instance.exports as unknown as Exports;
    this.bytes = new Uint8Array(this.run.memory.buffer);
    this.view = new DataView(this.run.memory.buffer);
    // The initial memory contains the kernel's tables.
    this.#top = this.bytes.length;
    this.columns = columns;
    this.#columnsAt = this.allocate(columns.length * COLUMN_SIZE).at;
    const fields = this.allocate(columns.length * 8);
    this.bytes.fill(0, this.#columnsAt, this.#columnsAt + columns.length * COLUMN_SIZE);
    columns.forEach((column, index) => {
      const key = Buffer.from(`${index === 0 ? '{' : ','}${JSON.stringify(column.name)}:`);
      const text = this.allocate(key.length);
      this.bytes.set(key, text.at);
      this.set(index, 'type', TYPES[column.type]);
      this.set(index, 'nullable', column.nullable ? 1 : 0);
      this.set(index, 'key', text.at);
      this.set(index, 'keyLength', key.length);
    });
    this.run.setColumns(columns.length, this.#columnsAt, fields.at);
  }

  /** Returns the address of a column's description. */
  columnAt(index: number): number {
    return this.#columnsAt + index * COLUMN_SIZE;
  }

  get(index: number, field: keyof typeof COLUMN): number {
    return this.view.getUint32(this.columnAt(index) + COLUMN[field], true);
  }

  set(index: number, field: keyof typeof COLUMN, value: number): void {
    this.view.setUint32(this.columnAt(index) + COLUMN[field], value, true);
  }

  /** Allocates a region of at least this size. Its content is undefined. */
  allocate(size: number): Region {
    // There are only four sizes for each power of two, so that freed regions can be reused.
    const step = Math.max(SMALLEST, 2 ** Math.floor(Math.log2(size + MARGIN) - 2));
    const room = Math.ceil((size + MARGIN) / step) * step;
    const at = this.#free.get(room)?.pop() ?? this.#extend(room);
    return { at, size: room - MARGIN };
  }

  free(region: Region): void {
    const room = region.size + MARGIN;
    const list = this.#free.get(room);
    if (list) list.push(region.at);
    else this.#free.set(room, [region.at]);
  }

  /** Moves the first `used` bytes of a region to a larger one, and frees the old one. */
  grow(region: Region, size: number, used: number): Region {
    const larger = this.allocate(size);
    this.bytes.copyWithin(larger.at, region.at, region.at + used);
    this.free(region);
    return larger;
  }

  /** Copies bytes out of the kernel's memory. */
  copy(at: number, end: number): Buffer {
    const copy = Buffer.allocUnsafeSlow(end - at);
    copy.set(this.bytes.subarray(at, end));
    return copy;
  }

  #extend(room: number): number {
    const at = this.#top;
    const missing = at + room - this.bytes.length;
    if (missing > 0) {
      try {
        this.run.memory.grow(Math.ceil(missing / PAGE));
      } catch {
        throw new RangeError(`There is no memory for another ${room} bytes: a row is too large to encode.`);
      }
      this.bytes = new Uint8Array(this.run.memory.buffer);
      this.view = new DataView(this.run.memory.buffer);
    }
    this.#top = at + room;
    return at;
  }

  #writeText(text: string, to: number): number {
    for (let index = 0; index < text.length; index += 1) this.bytes[to + index] = text.charCodeAt(index);
    return to + text.length;
  }
}
