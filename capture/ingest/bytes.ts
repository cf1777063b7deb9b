import { allocateChunk } from './chunks.ts';
import { FieldWriter } from './fields.ts';

const FRAME = 5;
const COPY_DATA = 0x64;
/** Signature, no flags, no extension: what every COPY BINARY begins with. */
const SIGNATURE = Buffer.from('5047434f50590aff0d0a000000000000000000', 'hex');
/** Shorter pieces are quicker copied here than by a call into the runtime. */
const SHORT = 64;

/**
 * Rows of COPY BINARY, written straight into CopyData messages. A message is a chunk; rows may cross its border,
 * as Postgres takes the data for one stream.
 */
export class CopyBytes extends FieldWriter {
  readonly #flush: (chunk: Buffer) => void;

  constructor(flush: (chunk: Buffer) => void) {
    super(allocateChunk(0));
    this.#flush = flush;
    this.chunk.set(SIGNATURE, FRAME);
    this.at = FRAME + SIGNATURE.length;
  }

  #send(): void {
    const message = this.chunk.subarray(0, this.at);
    message[0] = COPY_DATA;
    message.writeUInt32BE(this.at - 1, 1);
    this.#flush(message);
  }

  /** Makes room for `bytes` in one piece. */
  reserve(bytes: number): void {
    if (this.at + bytes <= this.chunk.length) return;
    this.#send();
    this.chunk = allocateChunk(bytes + FRAME);
    this.at = FRAME;
  }

  /** Fields that were written before, elsewhere. */
  piece(source: Buffer, from: number, to: number): void {
    const { chunk, at } = this;
    const length = to - from;
    if (length > SHORT) source.copy(chunk, at, from, to);
    else for (let index = 0; index < length; index += 1) chunk[at + index] = source[from + index] as number;
    this.at = at + length;
  }

  /** The last row was written. */
  end(): void {
    this.reserve(2);
    this.int16(-1);
    this.#send();
  }
}
