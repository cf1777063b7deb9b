import { uuidBytes } from '../../db/uuid-bytes.ts';
import { cleanText } from '../../values/texts.ts';

/** The size of a chunk. Only a value that does not fit gets a larger one. */
export const CHUNK_BYTES = 256 * 1024;
const KEPT_CHUNKS = 32;

/** Chunks to use again: fresh memory costs more than filling it. */
const free: Buffer[] = [];

/** Gives back a chunk that nobody reads any more. */
export function recycle(chunk: Buffer): void {
  const { buffer, byteOffset } = chunk;
  if (byteOffset !== 0 || buffer.byteLength !== CHUNK_BYTES || free.length >= KEPT_CHUNKS) return;
  free.push(Buffer.from(buffer as ArrayBuffer));
}

/** A chunk of at least `bytes` bytes. It is not taken from Node's pool, since it may be held for long. */
function allocateChunk(bytes: number): Buffer {
  return bytes > CHUNK_BYTES
    ? Buffer.allocUnsafeSlow(bytes)
    : (free.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES));
}

/** A chunk that several requests share. It is recycled when the last of them releases it. */
export class SharedChunk {
  readonly bytes: Buffer;
  #holders = 1;

  /** The creator is the first holder. The chunk is new memory of so many bytes, or memory that was written elsewhere. */
  constructor(memory: number | Buffer) {
    this.bytes = typeof memory === 'number' ? allocateChunk(memory) : memory;
  }

  hold(): void {
    this.#holders += 1;
  }

  release(): void {
    this.#holders -= 1;
    if (this.#holders === 0) recycle(this.bytes);
  }
}

const MICROSECONDS = 1000;
const EPOCH_2000 = 946_684_800_000;
/** Beyond this (before 1714 and after 2255) a number cannot count microseconds exactly. */
const EXACT = Number.MAX_SAFE_INTEGER / MICROSECONDS;
const TWO_32 = 2 ** 32;

/** Writes fields of COPY BINARY into a chunk, one after the other. The caller has made sure that they fit. */
export class FieldWriter {
  protected chunk: Buffer;
  /** Where the next byte goes. */
  protected at = 0;

  constructor(chunk: Buffer) {
    this.chunk = chunk;
  }

  int16(value: number): void {
    const at = this.at;
    this.chunk[at] = value >> 8;
    this.chunk[at + 1] = value;
    this.at = at + 2;
  }

  int32(value: number): void {
    const [chunk, at] = [this.chunk, this.at];
    chunk[at] = value >> 24;
    chunk[at + 1] = value >> 16;
    chunk[at + 2] = value >> 8;
    chunk[at + 3] = value;
    this.at = at + 4;
  }

  intField(value: number): void {
    this.int32(4);
    this.int32(value);
  }

  booleanField(value: boolean): void {
    this.int32(1);
    this.chunk[this.at] = value ? 1 : 0;
    this.at += 1;
  }

  nullField(): void {
    this.int32(-1);
  }

  bytesField(bytes: Uint8Array): void {
    this.int32(bytes.length);
    this.chunk.set(bytes, this.at);
    this.at += bytes.length;
  }

  /** Returns false if the text is not a uuid. */
  uuidField(text: string): boolean {
    this.int32(16);
    const isUuid = uuidBytes(text, this.chunk, this.at);
    this.at += 16;
    return isUuid;
  }

  /** Writes milliseconds since 1970 as a `timestamptz`. */
  timestampField(milliseconds: number): void {
    this.int32(8);
    const since2000 = milliseconds - EPOCH_2000;
    if (Math.abs(since2000) < EXACT) {
      const micro = since2000 * MICROSECONDS;
      const high = Math.floor(micro / TWO_32);
      this.int32(high);
      this.int32(micro - high * TWO_32);
    } else {
      this.chunk.writeBigInt64BE(BigInt(since2000) * BigInt(MICROSECONDS), this.at);
      this.at += 8;
    }
  }

  /** Writes a text. It needs as much room as `textRoom` says. */
  textField(text: string): void {
    const start = this.at + 4;
    const { length } = text;
    const chunk = this.chunk;
    let end = start;
    if (length < 48) {
      // This loop copies short ASCII faster than a call into the runtime.
      let index = 0;
      for (; index < length; index += 1) {
        const code = text.charCodeAt(index);
        if (code > 127) break;
        chunk[end++] = code;
      }
      if (index < length) end = start + chunk.write(text, start);
    } else {
      end = start + chunk.write(text, start);
    }
    this.int32(end - start);
    this.at = end;
  }

  /** Writes a text. Writes null for an empty text and for any other value. */
  optionalTextField(value: unknown): void {
    if (typeof value !== 'string' || value === '') this.nullField();
    else this.textField(cleanText(value));
  }
}

const LONG = 16 * 1024;

/** How much room to make for a text. Short texts get an upper bound; the bytes of a long text are counted. */
export function textRoom(text: string): number {
  return text.length < LONG ? text.length * 3 : Buffer.byteLength(text);
}

const FRAME = 5;
const COPY_DATA = 0x64;
/** Every COPY BINARY begins with this: a signature, no flags, no extension. */
const SIGNATURE = Buffer.from('5047434f50590aff0d0a000000000000000000', 'hex');
/** A loop copies shorter pieces faster than a call into the runtime. */
const SHORT = 64;

/**
 * Writes rows of COPY BINARY straight into CopyData messages. Each message is a chunk. A row may continue in the next
 * message, since Postgres reads the messages as one stream.
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

  /** Makes room for `bytes` bytes in one piece. */
  reserve(bytes: number): void {
    if (this.at + bytes <= this.chunk.length) return;
    this.#send();
    this.chunk = allocateChunk(bytes + FRAME);
    this.at = FRAME;
  }

  /** Copies fields that were already written into another chunk. */
  piece(source: Buffer, from: number, to: number): void {
    const { chunk, at } = this;
    const length = to - from;
    if (length > SHORT) source.copy(chunk, at, from, to);
    else for (let index = 0; index < length; index += 1) chunk[at + index] = source[from + index] as number;
    this.at = at + length;
  }

  /** Ends the COPY after the last row. */
  end(): void {
    this.reserve(2);
    this.int16(-1);
    this.#send();
  }
}
