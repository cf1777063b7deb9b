import { uuidBytes } from '../../db/uuid-bytes.ts';
import { cleanText } from './text.ts';

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
