import type { ColumnType } from '../columns.ts';
import { brokenRows } from '../copy-format.ts';
import type { Node } from './messages.ts';

/** The microseconds between 1970 and 2000, from where Postgres counts. */
const EPOCH = 946_684_800_000_000n;
const FOREVER = 2n ** 63n - 1n;
const NEVER = -(2n ** 63n);
const HEX = Buffer.from('0123456789abcdef');
const FIRST_SIZE = 4096;

/** The values of a column in a batch. */
export interface ColumnValues {
  /** Adds the value between two places of a row in COPY's binary form. */
  add(bytes: Buffer, start: number, end: number): void;
  addNull(): void;
  /** What was added, and its buffers. They are valid until the next value is added, after `clear`. */
  nodes(): Node[];
  buffers(): Buffer[];
  clear(): void;
}

/** Memory that grows. */
class Bytes {
  used = 0;
  #memory = Buffer.allocUnsafeSlow(FIRST_SIZE);

  /** Makes room for further bytes, and returns the memory. They go to `used`. */
  room(bytes: number): Buffer {
    const needed = this.used + bytes;
    if (needed > this.#memory.length) {
      const larger = Buffer.allocUnsafeSlow(2 ** Math.ceil(Math.log2(needed)));
      this.#memory.copy(larger, 0, 0, this.used);
      this.#memory = larger;
    }
    return this.#memory;
  }

  get content(): Buffer {
    return this.#memory.subarray(0, this.used);
  }
}

/** One bit for each value. */
class Bits {
  readonly #bytes = new Bytes();
  #length = 0;
  /** How many bits are not set. */
  unset = 0;

  get length(): number {
    return this.#length;
  }

  add(isSet: boolean): void {
    const bit = this.#length % 8;
    if (bit === 0) {
      const memory = this.#bytes.room(1);
      memory[this.#bytes.used] = 0;
      this.#bytes.used += 1;
    }
    const { content } = this.#bytes;
    const last = content.length - 1;
    if (isSet) content[last] = (content[last] as number) | (1 << bit);
    else this.unset += 1;
    this.#length += 1;
  }

  clear(): void {
    this.#bytes.used = 0;
    this.#length = 0;
    this.unset = 0;
  }

  get content(): Buffer {
    return this.#bytes.content;
  }
}

/** What columns of all types have in common: which values are there. */
abstract class Values implements ColumnValues {
  protected readonly present = new Bits();

  abstract add(bytes: Buffer, start: number, end: number): void;
  abstract addNull(): void;
  abstract buffers(): Buffer[];

  nodes(): Node[] {
    return [{ length: this.present.length, nulls: this.present.unset }];
  }

  clear(): void {
    this.present.clear();
  }
}

class Booleans extends Values {
  readonly #values = new Bits();

  add(bytes: Buffer, start: number): void {
    this.present.add(true);
    this.#values.add(bytes[start] === 1);
  }

  addNull(): void {
    this.present.add(false);
    this.#values.add(false);
  }

  buffers(): Buffer[] {
    return [this.present.content, this.#values.content];
  }

  override clear(): void {
    super.clear();
    this.#values.clear();
  }
}

/** Numbers of a fixed width, whose bytes have the other order. */
class Numbers extends Values {
  readonly #values = new Bytes();
  readonly #width: 4 | 8;
  readonly #isTime: boolean;

  constructor(width: 4 | 8, isTime = false) {
    super();
    this.#width = width;
    this.#isTime = isTime;
  }

  add(bytes: Buffer, start: number, end: number): void {
    const width = this.#width;
    if (end - start !== width) throw brokenRows(`a number has ${end - start} bytes`, false);
    this.present.add(true);
    const memory = this.#values.room(width);
    const at = this.#values.used;
    bytes.copy(memory, at, start, end);
    const value = memory.subarray(at, at + width);
    if (width === 4) value.swap32();
    else value.swap64();
    if (this.#isTime) value.writeBigInt64LE(since1970(value.readBigInt64LE()));
    this.#values.used += width;
  }

  addNull(): void {
    this.present.add(false);
    this.#values.room(this.#width).fill(0, this.#values.used, this.#values.used + this.#width);
    this.#values.used += this.#width;
  }

  buffers(): Buffer[] {
    return [this.present.content, this.#values.content];
  }

  override clear(): void {
    super.clear();
    this.#values.used = 0;
  }
}

/** A time that does not fit becomes the last or the first that does, as in Parquet. */
function since1970(since2000: bigint): bigint {
  if (since2000 === NEVER) return NEVER + 1n;
  return since2000 > FOREVER - EPOCH ? FOREVER : since2000 + EPOCH;
}

/** Where each of a list of things ends. */
class Ends {
  readonly #bytes = new Bytes();

  constructor() {
    this.clear();
  }

  add(end: number): void {
    this.#bytes.room(4).writeInt32LE(end, this.#bytes.used);
    this.#bytes.used += 4;
  }

  clear(): void {
    this.#bytes.used = 0;
    this.add(0);
  }

  get content(): Buffer {
    return this.#bytes.content;
  }
}

/** Writes the bytes of a text to memory, and returns how many there are. Takes what makes room for so many. */
type WriteText = (
  bytes: Buffer,
  start: number,
  end: number,
  room: (length: number) => Buffer,
  at: number,
) => number;

const asTheyAre: WriteText = (bytes, start, end, room, at) => bytes.copy(room(end - start), at, start, end);

/** The binary form of a jsonb begins with its version, which is no part of the document. */
const document: WriteText = (bytes, start, end, room, at) =>
  asTheyAre(bytes, bytes[start] === 1 ? start + 1 : start, end, room, at);

const uuid: WriteText = (bytes, start, end, room, at) => {
  if (end - start !== 16) throw brokenRows(`a uuid has ${end - start} bytes`, false);
  const memory = room(36);
  let to = at;
  for (let index = 0; index < 16; index += 1) {
    if (index === 4 || index === 6 || index === 8 || index === 10) memory[to++] = 0x2d;
    const byte = bytes[start + index] as number;
    memory[to++] = HEX[byte >> 4] as number;
    memory[to++] = HEX[byte & 15] as number;
  }
  return 36;
};

class Texts extends Values {
  readonly #ends = new Ends();
  readonly #content = new Bytes();
  readonly #write: WriteText;
  readonly #room = (length: number) => this.#content.room(length);

  constructor(write: WriteText) {
    super();
    this.#write = write;
  }

  get length(): number {
    return this.present.length;
  }

  add(bytes: Buffer, start: number, end: number): void {
    this.present.add(true);
    this.#content.used += this.#write(bytes, start, end, this.#room, this.#content.used);
    this.#ends.add(this.#content.used);
  }

  addNull(): void {
    this.present.add(false);
    this.#ends.add(this.#content.used);
  }

  buffers(): Buffer[] {
    return [this.present.content, this.#ends.content, this.#content.content];
  }

  override clear(): void {
    super.clear();
    this.#ends.clear();
    this.#content.used = 0;
  }
}

/** Lists of texts. */
class Lists extends Values {
  readonly #ends = new Ends();
  readonly #items = new Texts(asTheyAre);

  add(bytes: Buffer, start: number): void {
    const dimensions = bytes.readInt32BE(start);
    if (dimensions > 1) {
      throw brokenRows(`an array has ${dimensions} dimensions, and only those of one can be written`, false);
    }
    this.present.add(true);
    if (dimensions === 1) {
      let at = start + 20;
      for (let left = bytes.readInt32BE(start + 12); left > 0; left -= 1) {
        const length = bytes.readInt32BE(at);
        at += 4;
        if (length < 0) this.#items.addNull();
        else this.#items.add(bytes, at, at + length);
        at += Math.max(0, length);
      }
    }
    this.#ends.add(this.#items.length);
  }

  addNull(): void {
    this.present.add(false);
    this.#ends.add(this.#items.length);
  }

  override nodes(): Node[] {
    return [...super.nodes(), ...this.#items.nodes()];
  }

  buffers(): Buffer[] {
    return [this.present.content, this.#ends.content, ...this.#items.buffers()];
  }

  override clear(): void {
    super.clear();
    this.#ends.clear();
    this.#items.clear();
  }
}

/** Returns what keeps the values of a column. Documents and uuids are texts, as in Parquet. */
export function valuesOf(type: ColumnType): ColumnValues {
  switch (type) {
    case 'bool':
      return new Booleans();
    case 'int32':
      return new Numbers(4);
    case 'int64':
    case 'float64':
      return new Numbers(8);
    case 'timestamp':
      return new Numbers(8, true);
    case 'strings':
      return new Lists();
    case 'uuid':
      return new Texts(uuid);
    case 'json':
      return new Texts(document);
    case 'string':
      return new Texts(asTheyAre);
  }
}
