import { uuidBytes } from '../../db/uuid-bytes.ts';

/** Of a chunk, unless something larger has to be in one piece. */
export const CHUNK_BYTES = 256 * 1024;
const KEPT_CHUNKS = 32;

const free: Buffer[] = [];

/** Gives a chunk back that nobody reads any more. */
export function recycle(chunk: Buffer): void {
  const { buffer, byteOffset } = chunk;
  if (byteOffset !== 0 || buffer.byteLength !== CHUNK_BYTES || free.length >= KEPT_CHUNKS) return;
  free.push(Buffer.from(buffer as ArrayBuffer));
}

/** Memory of its own for each chunk, as it may outlive the call by much. At least as many bytes, usually more. */
function allocateChunk(bytes: number): Buffer {
  return bytes > CHUNK_BYTES
    ? Buffer.allocUnsafeSlow(bytes)
    : (free.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES));
}

/** A chunk that holds something of several requests, and is free when all have let go of it. */
export class SharedChunk {
  readonly bytes: Buffer;
  #holders = 1;

  /** Held by who makes it. */
  constructor(bytes: number) {
    this.bytes = allocateChunk(bytes);
  }

  hold(): void {
    this.#holders += 1;
  }

  release(): void {
    this.#holders -= 1;
    if (this.#holders === 0) recycle(this.bytes);
  }
}

/** What Postgres cannot hold in a text, and what JSON may spell but `->>` cannot read back. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: that control character is what is looked for
const NUL = /\u0000/g;
const REPLACEMENT = '\ufffd';

/** The text as a `text` column can hold it. Parsing did this already for all it knows of; costs nothing if so. */
export function cleanText(text: string): string {
  const whole = text.isWellFormed() ? text : text.toWellFormed();
  return whole.includes('\u0000') ? whole.replace(NUL, REPLACEMENT) : whole;
}

const MICROSECONDS = 1000;
const EPOCH_2000 = 946_684_800_000;
/** Beyond, a count of microseconds is no exact number any more (the year 2255, and 1714 on the other side). */
const EXACT = Number.MAX_SAFE_INTEGER / MICROSECONDS;
const TWO_32 = 2 ** 32;

/** Writes fields of COPY BINARY one after the other, into room that was made before. */
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

  /** Answers false when the text is no uuid. */
  uuidField(text: string): boolean {
    this.int32(16);
    const isUuid = uuidBytes(text, this.chunk, this.at);
    this.at += 16;
    return isUuid;
  }

  /** A `timestamptz` from milliseconds since 1970. */
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

  /** Any text; needs the room that `textRoom` says. */
  textField(text: string): void {
    const start = this.at + 4;
    const { length } = text;
    const chunk = this.chunk;
    let end = start;
    if (length < 48) {
      // Short ASCII is quicker copied here than by a call into the runtime.
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

  /** A text, or null when it is empty or something else. */
  optionalTextField(value: unknown): void {
    if (typeof value !== 'string' || value === '') this.nullField();
    else this.textField(cleanText(value));
  }
}

const LONG = 16 * 1024;

/** At most as many bytes as the text takes: a guess for short ones, for a long one it is worth counting. */
export function textRoom(text: string): number {
  return text.length < LONG ? text.length * 3 : Buffer.byteLength(text);
}

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
