const JSONB = 3802;
const HEADER = 20;
const VERSION = 1;

/**
 * JSON texts as the binary form of `jsonb[]`, for a parameter of that type: as text, an array would have to escape
 * each quote, and Postgres to take the escapes out again.
 */
export function jsonbArray(texts: readonly string[]): Buffer {
  const lengths = texts.map((text) => Buffer.byteLength(text));
  const bytes = Buffer.allocUnsafe(lengths.reduce((sum, length) => sum + length + 5, HEADER));
  // One dimension, no nulls, the type, and as many elements from index 1 on.
  const header = texts.length > 0 ? [1, 0, JSONB, texts.length, 1] : [0, 0, JSONB];
  for (const [index, value] of header.entries()) bytes.writeInt32BE(value, index * 4);
  let at = HEADER;
  for (const [index, text] of texts.entries()) {
    const length = lengths[index] as number;
    bytes.writeInt32BE(length + 1, at);
    bytes[at + 4] = VERSION;
    bytes.write(text, at + 5);
    at += length + 5;
  }
  return texts.length > 0 ? bytes : bytes.subarray(0, 12);
}
