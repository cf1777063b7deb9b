const COPY_DATA = 0x64;
const READY_FOR_QUERY = 0x5a;
const HEADER = 5;
/**
 * The longest row in bytes, unless its reader takes less. An event has at most 20 MB in at most a few columns, so only computed
 * rows are longer.
 */
export const LONGEST_ROW = 128 * 1024 * 1024;

/**
 * Splits what Postgres sends during a COPY TO STDOUT into messages. The contents of CopyData messages are moved
 * together within their chunk. All other messages are passed on.
 */
export class CopyMessages {
  /** Whether Postgres waits for the next query. Nothing of this COPY follows then. */
  ready = false;
  /** The length of a row that is too long, known before the row arrives. 0 means that there is none. */
  tooLong = 0;
  readonly #other: (bytes: Buffer) => void;
  readonly #longest: number;
  readonly #header = Buffer.alloc(HEADER);
  #headerBytes = 0;
  #type = 0;
  /** Bytes of the current message that are still to come. */
  #missing = 0;

  constructor(other: (bytes: Buffer) => void, longest: number = LONGEST_ROW) {
    this.#other = other;
    this.#longest = longest;
  }

  /** Returns the data of a chunk, in the memory of the chunk. */
  take(chunk: Buffer): Buffer {
    let read = 0;
    let written = 0;
    const { length } = chunk;
    while (read < length) {
      if (this.#missing === 0) {
        // Each row is a message, so this runs for each row.
        if (this.#headerBytes === 0 && length - read >= HEADER) {
          this.#begin(chunk, read);
          read += HEADER;
        } else {
          const more = Math.min(HEADER - this.#headerBytes, length - read);
          chunk.copy(this.#header, this.#headerBytes, read, read + more);
          this.#headerBytes += more;
          read += more;
          if (this.#headerBytes < HEADER) break;
          this.#headerBytes = 0;
          this.#begin(this.#header, 0);
        }
        if (this.#missing === 0) this.#end();
        continue;
      }
      const size = Math.min(this.#missing, length - read);
      if (this.#type === COPY_DATA) {
        if (written !== read) chunk.copyWithin(written, read, read + size);
        written += size;
      } else {
        this.#pass(chunk, read, size);
      }
      read += size;
      this.#missing -= size;
      if (this.#missing === 0) this.#end();
    }
    return chunk.subarray(0, written);
  }

  #begin(bytes: Buffer, at: number): void {
    this.#type = bytes[at] as number;
    this.#missing = bytes.readUInt32BE(at + 1) - 4;
    if (this.#type !== COPY_DATA) this.#pass(bytes, at, HEADER);
    else if (this.#missing > this.#longest) this.tooLong = this.#missing;
  }

  #end(): void {
    if (this.#type === READY_FOR_QUERY) this.ready = true;
  }

  /** Passes on a copy, because the receiver may keep it while the memory of the chunk is overwritten. */
  #pass(bytes: Buffer, at: number, size: number): void {
    this.#other(Buffer.from(bytes.subarray(at, at + size)));
  }
}
