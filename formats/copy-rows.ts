import { brokenRows, COPY_HEADER, checkCopyHeader } from './copy-format.ts';

const HEADER = COPY_HEADER.length;

/**
 * Reads the rows of `copy … to stdout (format binary)` from chunks that are cut anywhere, for those who take rows and
 * not files. A row is a stretch of bytes with the places of its fields: no object per row, and nothing is copied but
 * rows that lie across chunks. What is no COPY, or ends before it does, is a BrokenRowsError.
 *
 *     rows.push(chunk); while (rows.next()) use(rows.field(0));
 */
export class CopyRows {
  /** The bytes that the current row lies in; valid until the next call of `next` or `push`. */
  buffer: Buffer = Buffer.alloc(0);
  /** Where the current row begins, and where it ends. */
  start = 0;
  end = 0;
  readonly #columns: number;
  readonly #starts: Int32Array;
  readonly #lengths: Int32Array;
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #needed = HEADER;
  #begun = false;
  /** Of the stream, the one that is looked for. */
  #row = 0;
  #finished = false;

  constructor(columns: number) {
    this.#columns = columns;
    this.#starts = new Int32Array(columns);
    this.#lengths = new Int32Array(columns);
  }

  push(chunk: Buffer): void {
    const rest = this.buffer.length - this.end;
    // A long row is put together once, when all of it is there, and not anew for each chunk.
    this.#pending.push(chunk);
    this.#pendingBytes += chunk.length;
    if (rest + this.#pendingBytes < this.#needed) return;
    this.buffer =
      rest === 0 && this.#pending.length === 1
        ? chunk
        : Buffer.concat([this.buffer.subarray(this.end), ...this.#pending]);
    this.#pending = [];
    this.#pendingBytes = 0;
    this.start = 0;
    this.end = 0;
  }

  #need(bytes: number): false {
    this.#needed = bytes;
    return false;
  }

  /** Goes to the next row; false if it is not there yet, or if there is none. */
  next(): boolean {
    if (this.#pendingBytes > 0 || this.#finished) return false;
    const { buffer } = this;
    let at = this.end;
    if (!this.#begun) {
      if (!checkCopyHeader(buffer.subarray(at))) return this.#need(HEADER);
      this.#begun = true;
      at += HEADER;
      this.end = at;
    }
    this.start = at;
    if (buffer.length - at < 2) return this.#need(2);
    const fields = buffer.readInt16BE(at);
    at += 2;
    if (fields === -1) {
      this.#finished = true;
      this.end = at;
      return false;
    }
    if (fields !== this.#columns) {
      const text = `row ${this.#row} has ${fields} fields, and there are ${this.#columns} columns`;
      throw brokenRows(text, false);
    }
    for (let field = 0; field < fields; field += 1) {
      if (buffer.length - at < 4) return this.#need(at + 4 - this.start);
      const length = buffer.readInt32BE(at);
      at += 4;
      this.#starts[field] = at;
      this.#lengths[field] = length;
      if (length > 0) at += length;
      if (at > buffer.length) return this.#need(at - this.start);
    }
    this.end = at;
    this.#row += 1;
    return true;
  }

  /** Where a field's bytes begin; its length stands in the four bytes before. */
  fieldStart(field: number): number {
    return this.#starts[field] as number;
  }

  /** -1: null. */
  fieldLength(field: number): number {
    return this.#lengths[field] as number;
  }

  field(index: number): Buffer | null {
    const length = this.fieldLength(index);
    const start = this.fieldStart(index);
    return length < 0 ? null : this.buffer.subarray(start, start + length);
  }

  /** To be called after the last chunk. */
  finish(): void {
    if (this.#finished) return;
    const rest = this.#begun ? `row ${this.#row} or its end` : 'its header';
    throw brokenRows(`it stops before ${rest} is complete`, true);
  }
}
