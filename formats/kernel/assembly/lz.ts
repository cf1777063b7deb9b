// LZ4 and Snappy. Both consist of literals and copies of bytes that occurred at most 64 kB earlier. Both look up four
// bytes in a table of their last positions, and look up less often the longer they find no match.
// https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md
// https://github.com/google/snappy/blob/main/format_description.txt

const HASH_BITS: u32 = 14;
const WINDOW: u32 = 65_535;
/** The size of the table that the host provides, in bytes. */
export const LZ_TABLE: u32 = 4 << HASH_BITS;

function hashOf(word: u32): u32 {
  return (word * 0x9e3779b1) >> (32 - HASH_BITS);
}

/** Returns how many bytes are the same from two places on. */
function alike(a: u32, b: u32, end: u32): u32 {
  const start = b;
  while (b + 8 <= end) {
    const difference = load<u64>(a) ^ load<u64>(b);
    if (difference !== 0) return b - start + <u32>(ctz(difference) >> 3);
    a += 8;
    b += 8;
  }
  while (b < end && load<u8>(a) === load<u8>(b)) {
    a += 1;
    b += 1;
  }
  return b - start;
}

function lz4Length(to: u32, length: u32): u32 {
  while (length >= 255) {
    store<u8>(to, 255);
    to += 1;
    length -= 255;
  }
  store<u8>(to, <u8>length);
  return to + 1;
}

function lz4Literals(to: u32, from: u32, length: u32, matchCode: u32): u32 {
  store<u8>(to, <u8>((min<u32>(length, 15) << 4) | min<u32>(matchCode, 15)));
  to += 1;
  if (length >= 15) to = lz4Length(to, length - 15);
  memory.copy(to, from, length);
  return to + length;
}

function snappyLiterals(to: u32, from: u32, length: u32): u32 {
  if (length === 0) return to;
  const code = length - 1;
  if (code < 60) {
    store<u8>(to, <u8>(code << 2));
    to += 1;
  } else {
    const size: u32 = code < 0x100 ? 1 : code < 0x10000 ? 2 : code < 0x1000000 ? 3 : 4;
    store<u8>(to, <u8>((59 + size) << 2));
    store<u32>(to, code, 1);
    to += 1 + size;
  }
  memory.copy(to, from, length);
  return to + length;
}

function snappyCopy(to: u32, offset: u32, length: u32): u32 {
  while (length > 0) {
    // No piece may be shorter than four bytes.
    const piece = length > 67 ? 64 : length > 64 ? 60 : length;
    store<u8>(to, <u8>(((piece - 1) << 2) | 2));
    store<u16>(to, <u16>offset, 1);
    to += 3;
    length -= piece;
  }
  return to;
}

function compress(from: u32, length: u32, to: u32, table: u32, lz4: bool): u32 {
  memory.fill(table, 0, LZ_TABLE);
  const end = from + length;
  let literals = from;
  if (length >= 16) {
    // An LZ4 block must end with five literals, and no copy may begin in the last twelve bytes.
    const matchEnd = end - 5;
    const last = end - 12;
    let at = from + 1;
    store<u32>(table + (hashOf(load<u32>(from)) << 2), 1);
    let misses: u32 = 0;
    while (at <= last) {
      const slot = table + (hashOf(load<u32>(at)) << 2);
      const before = load<u32>(slot);
      store<u32>(slot, at - from + 1);
      const earlier = from + before - 1;
      if (before === 0 || at - earlier > WINDOW || load<u32>(earlier) !== load<u32>(at)) {
        misses += 1;
        at += 1 + (misses >> 6);
        continue;
      }
      misses = 0;
      const size = 4 + alike(earlier + 4, at + 4, matchEnd);
      if (lz4) {
        to = lz4Literals(to, literals, at - literals, size - 4);
        store<u16>(to, <u16>(at - earlier));
        to += 2;
        if (size >= 19) to = lz4Length(to, size - 19);
      } else {
        to = snappyLiterals(to, literals, at - literals);
        to = snappyCopy(to, at - earlier, size);
      }
      at += size;
      literals = at;
      if (at <= last) store<u32>(table + (hashOf(load<u32>(at - 2)) << 2), at - 2 - from + 1);
    }
  }
  return lz4 ? lz4Literals(to, literals, end - literals, 0) : snappyLiterals(to, literals, end - literals);
}

/** Writes a block of LZ4. It needs at most `length + length / 255 + 16` bytes. Returns the end of the output. */
export function lz4(from: u32, length: u32, to: u32, table: u32): u32 {
  return compress(from, length, to, table, true);
}

/** Writes a block of Snappy. It needs at most `32 + length + length / 6` bytes. Returns the end of the output. */
export function snappy(from: u32, length: u32, to: u32, table: u32): u32 {
  let rest = length;
  while (rest >= 0x80) {
    store<u8>(to, <u8>(rest | 0x80));
    to += 1;
    rest >>= 7;
  }
  store<u8>(to, <u8>rest);
  return compress(from, length, to + 1, table, false);
}
