import { brokenRows, COPY_HEADER, checkCopyHeader } from './copy-format.ts';

const HEADER = COPY_HEADER.length;

/**
 * Reads the rows of `copy … to stdout (format binary)`, for destinations that take rows and not files. Chunks may be cut
 * anywhere. It makes no object for a row, and copies only rows that span several chunks. Throws a BrokenRowsError if the
 * bytes are not those of a COPY, or end too early.
 *
 *     rows.push(chunk); while (rows.next()) use(rows.field(0));
 */
export class CopyRows {
  /** The bytes that contain the current row. Valid until the next call of `next` or `push`. */
  buffer: Buffer = Buffer.alloc(0);
  /** Where the current row begins and ends. */
  start = 0;
  end = 0;
  readonly #columns: number;
  readonly #starts: Int32Array;
  readonly #lengths: Int32Array;
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #needed = HEADER;
  #begun = false;
  /** The index of the next row in the stream. */
  #row = 0;
  #finished = false;

  constructor(columns: number) {
    this.#columns = columns;
    this.#starts = new Int32Array(columns);
    this.#lengths = new Int32Array(columns);
  }

  push(chunk: Buffer): void {
    const rest = this.buffer.length - this.end;
    // A long row is joined once, when it is complete, and not again for each chunk.
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

  /** Goes to the next row. Returns false if it is not complete yet, or if there is none. */
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

  /** Where the bytes of a field begin. The four bytes before hold its length. */
  fieldStart(field: number): number {
    return this.#starts[field] as number;
  }

  /** The length of a field. -1 for null. */
  fieldLength(field: number): number {
    return this.#lengths[field] as number;
  }

  field(index: number): Buffer | null {
    const length = this.fieldLength(index);
    const start = this.fieldStart(index);
    return length < 0 ? null : this.buffer.subarray(start, start + length);
  }

  /** Call it after the last chunk. */
  finish(): void {
    if (this.#finished) return;
    const rest = this.#begun ? `row ${this.#row} or its end` : 'its header';
    throw brokenRows(`it stops before ${rest} is complete`, true);
  }
}
