const FIRST_SIZE = 1024;

/** The number of bytes before the end at which something begins. Everything is written from the end to the beginning. */
export type Place = number;

/** Writes the value of a field. Undefined: the field has its default. */
type FieldWriter = (() => void) | undefined;

/** Writes a FlatBuffer, as far as the metadata of Arrow needs it. */
export class FlatBuffer {
  #bytes = Buffer.alloc(FIRST_SIZE);
  #used = 0;
  #widest = 1;

  int8(value: number): void {
    this.#prepare(1);
    this.#bytes.writeInt8(value, this.#down(1));
  }

  int16(value: number): void {
    this.#prepare(2);
    this.#bytes.writeInt16LE(value, this.#down(2));
  }

  int32(value: number): void {
    this.#prepare(4);
    this.#bytes.writeInt32LE(value, this.#down(4));
  }

  int64(value: number): void {
    this.#prepare(8);
    this.#bytes.writeBigInt64LE(BigInt(value), this.#down(8));
  }

  /** Writes where something is that was written before. */
  reference(place: Place): void {
    this.#prepare(4);
    const at = this.#down(4);
    this.#bytes.writeInt32LE(this.#used - place, at);
  }

  text(value: string): Place {
    const bytes = Buffer.from(value);
    // A zero follows the text, and is not part of its length.
    this.#prepare(4, bytes.length + 1);
    this.#down(1);
    bytes.copy(this.#bytes, this.#down(bytes.length));
    this.int32(bytes.length);
    return this.#used;
  }

  references(places: readonly Place[]): Place {
    this.#prepare(4, places.length * 4);
    for (const place of places.toReversed()) this.reference(place);
    this.int32(places.length);
    return this.#used;
  }

  /** Writes a list of structures of two 64-bit numbers. */
  pairs(pairs: readonly (readonly [number, number])[]): Place {
    this.#prepare(4, pairs.length * 16);
    this.#prepare(8, pairs.length * 16);
    for (const [first, second] of pairs.toReversed()) {
      this.int64(second);
      this.int64(first);
    }
    this.int32(pairs.length);
    return this.#used;
  }

  /** Writes a table. What its fields refer to is written before. */
  table(fields: readonly FieldWriter[]): Place {
    const begin = this.#used;
    const places = fields.map((write) => {
      write?.();
      return write ? this.#used : 0;
    });
    this.int32(0);
    const table = this.#used;
    for (const place of places.toReversed()) this.int16(place > 0 ? table - place : 0);
    this.int16(table - begin);
    this.int16((fields.length + 2) * 2);
    this.#bytes.writeInt32LE(this.#used - table, this.#bytes.length - table);
    return table;
  }

  /** Ends with the table that everything belongs to. */
  finish(root: Place): Buffer {
    this.#prepare(this.#widest, 4);
    this.reference(root);
    return this.#bytes.subarray(this.#bytes.length - this.#used);
  }

  /** Makes room for a value that is aligned to its width, with `following` bytes to be written before it. */
  #prepare(width: number, following = 0): void {
    this.#widest = Math.max(this.#widest, width);
    const gap = -(this.#used + following) & (width - 1);
    const needed = this.#used + gap + following + width;
    if (needed > this.#bytes.length) {
      const larger = Buffer.alloc(2 ** Math.ceil(Math.log2(needed)));
      this.#bytes.copy(larger, larger.length - this.#used, this.#bytes.length - this.#used);
      this.#bytes = larger;
    }
    this.#used += gap;
  }

  #down(bytes: number): number {
    this.#used += bytes;
    return this.#bytes.length - this.#used;
  }
}
