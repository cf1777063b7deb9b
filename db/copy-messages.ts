const COPY_DATA = 0x64;
const READY_FOR_QUERY = 0x5a;
const HEADER = 5;
/** Bytes of a row: an event has 20 MB at most, in several columns at most; only what is computed of it can be longer. */
export const LONGEST_ROW = 128 * 1024 * 1024;

/**
 * Takes the messages of Postgres's protocol apart, as they come during a COPY TO STDOUT: the contents of CopyData are
 * moved together within their chunk, everything else is passed on.
 */
export class CopyMessages {
  /** Whether Postgres said that it waits for the next query: nothing of this COPY comes any more. */
  ready = false;
  /** Bytes of a row that is longer than a row may be, known before it comes; 0: there was none. */
  tooLong = 0;
  readonly #other: (bytes: Buffer) => void;
  readonly #header = Buffer.alloc(HEADER);
  #headerBytes = 0;
  #type = 0;
  /** Bytes of the current message that are still to come. */
  #missing = 0;

  constructor(other: (bytes: Buffer) => void) {
    this.#other = other;
  }

  /** The data of a chunk, in the chunk's own memory. */
  take(chunk: Buffer): Buffer {
    let read = 0;
    let written = 0;
    const { length } = chunk;
    while (read < length) {
      if (this.#missing === 0) {
        // Rows are messages of their own, so this is done for each row.
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
    else if (this.#missing > LONGEST_ROW) this.tooLong = this.#missing;
  }

  #end(): void {
    if (this.#type === READY_FOR_QUERY) this.ready = true;
  }

  /** A copy: whoever gets it may keep it, and the chunk's memory is written to. */
  #pass(bytes: Buffer, at: number, size: number): void {
    this.#other(Buffer.from(bytes.subarray(at, at + size)));
  }
}
