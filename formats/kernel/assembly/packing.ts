// Parquet's hybrid of run-length encoding and bit packing:
// https://parquet.apache.org/docs/file-format/data-pages/encodings/

function varint(to: u32, value: u32): u32 {
  while (value >= 0x80) {
    store<u8>(to, <u8>(value | 0x80));
    to += 1;
    value >>= 7;
  }
  store<u8>(to, <u8>value);
  return to + 1;
}

function value<T>(from: u32, index: u32): u32 {
  return <u32>load<T>(from + index * sizeof<T>());
}

function runFrom<T>(from: u32, index: u32, count: u32): u32 {
  const first = value<T>(from, index);
  let end = index + 1;
  while (end < count && value<T>(from, end) === first) end += 1;
  return end - index;
}

/** Returns whether the eight values from `index` on are equal. */
function startsRun<T>(from: u32, index: u32, count: u32): bool {
  if (index + 8 > count) return false;
  const first = value<T>(from, index);
  for (let i: u32 = 1; i < 8; i += 1) if (value<T>(from, index + i) !== first) return false;
  return true;
}

function pack<T>(from: u32, count: u32, width: u32, to: u32): u32 {
  let i: u32 = 0;
  while (i < count) {
    if (startsRun<T>(from, i, count)) {
      const run = runFrom<T>(from, i, count);
      to = varint(to, run << 1);
      const repeated = value<T>(from, i);
      for (let shift: u32 = 0; shift < width; shift += 8) {
        store<u8>(to, <u8>(repeated >> shift));
        to += 1;
      }
      i += run;
      continue;
    }
    let stop = i + 8;
    while (stop < count && !startsRun<T>(from, stop, count)) stop += 8;
    const groups = (stop - i) >> 3;
    to = varint(to, (groups << 1) | 1);
    let word: u64 = 0;
    let bits: u32 = 0;
    for (; i < stop; i += 1) {
      if (i < count) word |= (<u64>value<T>(from, i)) << bits;
      bits += width;
      while (bits >= 8) {
        store<u8>(to, <u8>word);
        to += 1;
        word >>= 8;
        bits -= 8;
      }
    }
  }
  return to;
}

/** Packs levels, which have one byte each. */
export function packLevels(from: u32, count: u32, width: u32, to: u32): u32 {
  return pack<u8>(from, count, width, to);
}

/** Packs dictionary indexes, which have four bytes each. */
export function packIndices(from: u32, count: u32, width: u32, to: u32): u32 {
  return pack<u32>(from, count, width, to);
}

/** Packs booleans, which have one byte each, into one bit each. */
export function packBits(from: u32, count: u32, to: u32): u32 {
  for (let i: u32 = 0; i < count; i += 8) {
    let byte: u32 = 0;
    for (let bit: u32 = 0; bit < 8 && i + bit < count; bit += 1)
      byte |= (<u32>load<u8>(from + i + bit)) << bit;
    store<u8>(to, <u8>byte);
    to += 1;
  }
  return to;
}
