/** The value of each hexadecimal digit by its character code, and 255 for all other characters. */
const DIGITS = new Uint8Array(128).fill(255);
for (let digit = 0; digit < 16; digit += 1) {
  DIGITS[digit.toString(16).charCodeAt(0)] = digit;
  DIGITS[digit.toString(16).toUpperCase().charCodeAt(0)] = digit;
}
/** Where the pairs of digits begin in `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`. */
const PAIRS = Uint8Array.of(0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34);

/** Writes the 16 bytes of a uuid. Returns false if the text is not a uuid. */
export function uuidBytes(text: string, target: Uint8Array, offset: number): boolean {
  if (text.length !== 36) return false;
  let bad = 0;
  for (let index = 0; index < 16; index += 1) {
    const at = PAIRS[index] as number;
    const high = DIGITS[text.charCodeAt(at)] ?? 255;
    const low = DIGITS[text.charCodeAt(at + 1)] ?? 255;
    bad |= high | low;
    target[offset + index] = (high << 4) | low;
  }
  return bad < 16;
}

/** Formats 16 bytes as a uuid. */
export function uuidText(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, 16).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
