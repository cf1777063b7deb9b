import { hash } from 'node:crypto';

const TWO_TO_28 = 2 ** 28;
const TWO_TO_MINUS_60 = 2 ** -60;
/** A text of so many bytes fits into one block with its length. */
const ONE_BLOCK = 55;
const words = new Int32Array(80);

/** Writes a short ASCII text as a block of SHA-1. Returns false if it is neither short nor ASCII. */
function writeBlock(text: string): boolean {
  const { length } = text;
  if (length > ONE_BLOCK) return false;
  words.fill(0, 0, 16);
  for (let index = 0; index < length; index += 1) {
    const code = text.charCodeAt(index);
    if (code > 0x7f) return false;
    words[index >> 2] = (words[index >> 2] as number) | (code << (24 - ((index & 3) << 3)));
  }
  words[length >> 2] = (words[length >> 2] as number) | (0x80 << (24 - ((length & 3) << 3)));
  words[15] = length << 3;
  return true;
}

/** The first 60 bits of the SHA-1 of the block, as a share of 2^60. */
function digestBlock(): number {
  for (let index = 16; index < 80; index += 1) {
    const mixed =
      (words[index - 3] as number) ^
      (words[index - 8] as number) ^
      (words[index - 14] as number) ^
      (words[index - 16] as number);
    words[index] = (mixed << 1) | (mixed >>> 31);
  }
  let a = 0x67452301;
  let b = 0xefcdab89 | 0;
  let c = 0x98badcfe | 0;
  let d = 0x10325476;
  let e = 0xc3d2e1f0 | 0;
  let index = 0;
  for (; index < 20; index += 1) {
    const next =
      (((a << 5) | (a >>> 27)) + (d ^ (b & (c ^ d))) + e + 0x5a827999 + (words[index] as number)) | 0;
    e = d;
    d = c;
    c = (b << 30) | (b >>> 2);
    b = a;
    a = next;
  }
  for (; index < 40; index += 1) {
    const next = (((a << 5) | (a >>> 27)) + (b ^ c ^ d) + e + 0x6ed9eba1 + (words[index] as number)) | 0;
    e = d;
    d = c;
    c = (b << 30) | (b >>> 2);
    b = a;
    a = next;
  }
  for (; index < 60; index += 1) {
    const next =
      (((a << 5) | (a >>> 27)) + ((b & c) | (d & (b | c))) + e + 0x8f1bbcdc + (words[index] as number)) | 0;
    e = d;
    d = c;
    c = (b << 30) | (b >>> 2);
    b = a;
    a = next;
  }
  for (; index < 80; index += 1) {
    const next = (((a << 5) | (a >>> 27)) + (b ^ c ^ d) + e + 0xca62c1d6 + (words[index] as number)) | 0;
    e = d;
    d = c;
    c = (b << 30) | (b >>> 2);
    b = a;
    a = next;
  }
  const high = (a + 0x67452301) >>> 0;
  const low = ((b + 0xefcdab89) >>> 0) >>> 4;
  return (high * TWO_TO_28 + low) * TWO_TO_MINUS_60;
}

/**
 * Where a text lies between 0 and 1: the same text lies at the same place in every SDK. It is the first 15 hexadecimal
 * digits of the text's SHA-1 as a share of the largest such number, both as doubles.
 */
export function placeOf(text: string): number {
  if (writeBlock(text)) return digestBlock();
  const digest = hash('sha1', text, 'buffer');
  return (digest.readUInt32BE(0) * TWO_TO_28 + (digest.readUInt32BE(4) >>> 4)) * TWO_TO_MINUS_60;
}
