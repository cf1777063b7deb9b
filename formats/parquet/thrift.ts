const I32 = 5;
const I64 = 6;
const BINARY = 8;
const LIST = 9;
const STRUCT = 12;

/**
 * Writes Thrift's compact protocol, as far as Parquet's metadata needs it. Fields must come in rising order of their
 * ids.
 */
export class ThriftWriter {
  #bytes: Buffer = Buffer.alloc(1024);
  #length = 0;
  #lastId = 0;
  #outer: number[] = [];

  bool(id: number, value: boolean): void {
    this.#field(id, value ? 1 : 2);
  }

  i32(id: number, value: number): void {
    this.#field(id, I32);
    this.#integer(BigInt(value));
  }

  i64(id: number, value: number): void {
    this.#field(id, I64);
    this.#integer(BigInt(value));
  }

  binary(id: number, value: string | Uint8Array): void {
    this.#field(id, BINARY);
    this.#text(value);
  }

  struct(id: number, write: () => void): void {
    this.#field(id, STRUCT);
    this.#fields(write);
  }

  structs<T>(id: number, items: readonly T[], write: (item: T) => void): void {
    this.#list(id, items.length, STRUCT);
    for (const item of items) this.#fields(() => write(item));
  }

  i32s(id: number, items: readonly number[]): void {
    this.#list(id, items.length, I32);
    for (const item of items) this.#integer(BigInt(item));
  }

  strings(id: number, items: readonly string[]): void {
    this.#list(id, items.length, BINARY);
    for (const item of items) this.#text(item);
  }

  /** Ends the outermost struct. */
  finish(): Buffer {
    this.#byte(0);
    return this.#bytes.subarray(0, this.#length);
  }

  #fields(write: () => void): void {
    this.#outer.push(this.#lastId);
    this.#lastId = 0;
    write();
    this.#byte(0);
    this.#lastId = this.#outer.pop() as number;
  }

  #field(id: number, type: number): void {
    const step = id - this.#lastId;
    if (step <= 0 || step > 15) throw new RangeError(`Field ${id} cannot follow ${this.#lastId}.`);
    this.#byte((step << 4) | type);
    this.#lastId = id;
  }

  #list(id: number, size: number, type: number): void {
    this.#field(id, LIST);
    if (size < 15) {
      this.#byte((size << 4) | type);
    } else {
      this.#byte(0xf0 | type);
      this.#varint(BigInt(size));
    }
  }

  #text(value: string | Uint8Array): void {
    const bytes = typeof value === 'string' ? Buffer.from(value) : value;
    this.#varint(BigInt(bytes.length));
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  #integer(value: bigint): void {
    this.#varint(BigInt.asUintN(64, (value << 1n) ^ (value >> 63n)));
  }

  #varint(value: bigint): void {
    let rest = value;
    for (; rest >= 0x80n; rest >>= 7n) this.#byte(Number(rest & 0x7fn) | 0x80);
    this.#byte(Number(rest));
  }

  #byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#length] = value;
    this.#length += 1;
  }

  #reserve(room: number): void {
    if (this.#length + room <= this.#bytes.length) return;
    const larger = Buffer.alloc(Math.max(this.#bytes.length * 2, this.#length + room));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}
