import { nextTurn } from '../../db/loop-turns.ts';
import { DecodeError, MAX_BODY_BYTES, type Memory, tooLarge } from './limits.ts';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const VALUES = new Int16Array(128).fill(-1);
for (let index = 0; index < ALPHABET.length; index += 1) VALUES[ALPHABET.charCodeAt(index)] = index;
const PADDING = 0x3d;

const CHAR_8_BIT = 0;
const CHAR_16_BIT = 1;
const END = 2;
/** Codes 0 to 2 are the commands above. The entries of the dictionary follow. */
const FIRST_ENTRY = 3;
/** After so many codes, other requests get their turn. */
const CODES_PER_TURN = 50_000;

function invalid(what: string): DecodeError {
  return new DecodeError('invalid_lz64', `failed to decode request: invalid lz64 data: ${what}`);
}

/** Reads bits. Each letter holds six, the highest first. Numbers are stored with their lowest bit first. */
class BitReader {
  readonly #bytes: Buffer;
  #position = 0;
  #value = 0;
  #mask = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  #bit(): number {
    if (this.#mask === 0) {
      const code = this.#bytes[this.#position] ?? PADDING;
      this.#value = code === PADDING ? 0 : code < 128 ? (VALUES[code] as number) : -1;
      if (this.#value < 0) throw invalid(`the letter at ${this.#position} is not base64`);
      if (this.#position >= this.#bytes.length) throw invalid('it ends in the middle');
      this.#position += 1;
      this.#mask = 32;
    }
    const set = (this.#value & this.#mask) > 0 ? 1 : 0;
    this.#mask >>= 1;
    return set;
  }

  number(bits: number): number {
    let result = 0;
    for (let power = 0; power < bits; power += 1) result += this.#bit() * 2 ** power;
    return result;
  }
}

/**
 * Decompresses what lz-string's `compressToBase64` made. The library itself has no limit: each code may stand for a
 * text as long as the number of codes before it, so some kilobytes can unfold to gigabytes.
 */
export async function decompressLz64(bytes: Buffer, memory?: Memory): Promise<string> {
  await memory?.unpack();
  const reader = new BitReader(bytes);
  const entries: string[] = new Array(FIRST_ENTRY).fill('');
  let bits = 2;
  let codes = 0;
  const command = reader.number(bits);
  if (command === END) return '';
  if (command > END) throw invalid('it does not start with a character');
  let previous = String.fromCharCode(reader.number(command === CHAR_8_BIT ? 8 : 16));
  entries.push(previous);
  bits = 3;
  // The dictionary grows by one with each code and by one more with each new character.
  let untilWider = 4;
  const parts = [previous];
  let length = 1;
  let counted = 0;
  const grow = () => {
    untilWider -= 1;
    if (untilWider > 0) return;
    untilWider = 2 ** bits;
    bits += 1;
  };
  for (;;) {
    codes += 1;
    if (codes % CODES_PER_TURN === 0) {
      memory?.grow(length - counted);
      counted = length;
      await nextTurn();
    }
    let code = reader.number(bits);
    if (code === END) break;
    if (code === CHAR_8_BIT || code === CHAR_16_BIT) {
      entries.push(String.fromCharCode(reader.number(code === CHAR_8_BIT ? 8 : 16)));
      code = entries.length - 1;
      grow();
    }
    const known = entries[code];
    if (known === undefined && code !== entries.length) throw invalid(`code ${code} is not known yet`);
    const entry = known ?? previous + (previous[0] as string);
    parts.push(entry);
    length += entry.length;
    if (length > MAX_BODY_BYTES) throw tooLarge('the decompressed body');
    entries.push(previous + (entry[0] as string));
    grow();
    previous = entry;
  }
  const text = parts.join('');
  const size = Buffer.byteLength(text);
  if (size > MAX_BODY_BYTES) throw tooLarge('the decompressed body');
  memory?.grow(size - counted);
  return text;
}
