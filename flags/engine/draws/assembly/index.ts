// SHA-1 of four short texts at once, in AssemblyScript. `node scripts/build-kernel.ts` compiles it to draws.wasm. Each text is
// a prefix, the id of somebody, and perhaps the word `variant`. flags/engine/draws/draws.ts has the same layout.

/** A prefix has at most so many bytes. */
const PREFIX: u32 = 64;
/** The room for a whole text with its padding: the prefix, the longest id, the suffix, and the length. */
const LANE: u32 = 384;
/** Four words that describe the texts, and then the four prefixes. */
const GROUP = memory.data(16 + 4 * 64);
const ID = memory.data(256);
const LANES = memory.data(4 * 384);
const WORDS = memory.data(80 * 16);
const PLACES = memory.data(4 * 8);
/** `variant`, and the mark of the end. */
const SUFFIX: u64 = 0x80746e6169726176;
const HAS_SUFFIX: u32 = 0x100;

export function groupAt(): u32 {
  return <u32>GROUP;
}
export function idAt(): u32 {
  return <u32>ID;
}
export function placesAt(): u32 {
  return <u32>PLACES;
}

/** Writes the text of a lane with its padding. Returns how many blocks it has. */
function write(lane: u32, idLength: u32): u32 {
  const description = load<u32>(GROUP + (lane << 2));
  const from = <u32>GROUP + 16 + lane * PREFIX;
  const to = <u32>LANES + lane * LANE;
  for (let i: u32 = 0; i < PREFIX; i += 16) v128.store(to + i, v128.load(from + i));
  let end = to + (description & 0xff);
  for (let i: u32 = 0; i < idLength; i += 16) v128.store(end + i, v128.load(ID + i));
  end += idLength;
  if (description & HAS_SUFFIX) {
    store<u64>(end, SUFFIX);
    end += 7;
  } else store<u8>(end, 0x80);
  const length = end - to;
  const blocks = (length + 72) >> 6;
  for (let at = end + 1; at < to + (blocks << 6); at += 16) v128.store(at, i32x4.splat(0));
  store<u32>(to + (blocks << 6) - 4, bswap<u32>(length << 3));
  return blocks;
}

function rotated(words: v128, bits: i32): v128 {
  return v128.or(v128.shl<i32>(words, bits), v128.shr<u32>(words, 32 - bits));
}

function prepareWords(block: u32): void {
  const from = <u32>LANES + (block << 6);
  for (let i: u32 = 0; i < 16; i += 1) {
    const at = from + (i << 2);
    let words = v128.load32_zero(at);
    words = v128.load_lane<u32>(at, words, 1, LANE);
    words = v128.load_lane<u32>(at, words, 2, 2 * LANE);
    words = v128.load_lane<u32>(at, words, 3, 3 * LANE);
    words = v128.shuffle<u8>(words, words, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
    v128.store(WORDS + (i << 4), words);
  }
  for (let at = <u32>WORDS + 256; at < <u32>WORDS + 1280; at += 16) {
    const mixed = v128.xor(
      v128.xor(v128.load(at - 48), v128.load(at - 128)),
      v128.xor(v128.load(at - 224), v128.load(at - 256)),
    );
    v128.store(at, rotated(mixed, 1));
  }
}

function place(lane: u32, high: u32, low: u32): void {
  store<f64>(
    PLACES + (lane << 3),
    (<f64>high * 268435456.0 + <f64>(low >> 4)) * (1.0 / 1152921504606846976.0),
  );
}

/** Computes where the four texts lie between 0 and 1. */
export function draw(idLength: u32): void {
  const blocks0 = write(0, idLength);
  const blocks1 = write(1, idLength);
  const blocks2 = write(2, idLength);
  const blocks3 = write(3, idLength);
  const most = max(max(blocks0, blocks1), max(blocks2, blocks3));
  let h0 = i32x4.splat(0x67452301);
  let h1 = i32x4.splat(0xefcdab89);
  let h2 = i32x4.splat(0x98badcfe);
  let h3 = i32x4.splat(0x10325476);
  let h4 = i32x4.splat(0xc3d2e1f0);
  for (let block: u32 = 0; block < most; block += 1) {
    prepareWords(block);
    let a = h0;
    let b = h1;
    let c = h2;
    let d = h3;
    let e = h4;
    let at = <u32>WORDS;
    for (const end = at + 320; at < end; at += 16) {
      const chosen = v128.xor(d, v128.and(b, v128.xor(c, d)));
      const next = i32x4.add(
        i32x4.add(i32x4.add(rotated(a, 5), chosen), i32x4.add(e, i32x4.splat(0x5a827999))),
        v128.load(at),
      );
      e = d;
      d = c;
      c = rotated(b, 30);
      b = a;
      a = next;
    }
    for (const end = at + 320; at < end; at += 16) {
      const next = i32x4.add(
        i32x4.add(
          i32x4.add(rotated(a, 5), v128.xor(v128.xor(b, c), d)),
          i32x4.add(e, i32x4.splat(0x6ed9eba1)),
        ),
        v128.load(at),
      );
      e = d;
      d = c;
      c = rotated(b, 30);
      b = a;
      a = next;
    }
    for (const end = at + 320; at < end; at += 16) {
      const most = v128.or(v128.and(b, c), v128.and(d, v128.or(b, c)));
      const next = i32x4.add(
        i32x4.add(i32x4.add(rotated(a, 5), most), i32x4.add(e, i32x4.splat(0x8f1bbcdc))),
        v128.load(at),
      );
      e = d;
      d = c;
      c = rotated(b, 30);
      b = a;
      a = next;
    }
    for (const end = at + 320; at < end; at += 16) {
      const next = i32x4.add(
        i32x4.add(
          i32x4.add(rotated(a, 5), v128.xor(v128.xor(b, c), d)),
          i32x4.add(e, i32x4.splat(0xca62c1d6)),
        ),
        v128.load(at),
      );
      e = d;
      d = c;
      c = rotated(b, 30);
      b = a;
      a = next;
    }
    h0 = i32x4.add(h0, a);
    h1 = i32x4.add(h1, b);
    h2 = i32x4.add(h2, c);
    h3 = i32x4.add(h3, d);
    h4 = i32x4.add(h4, e);
    // A shorter text is complete, whatever is computed in its lane after this.
    const done = block + 1;
    if (blocks0 === done) place(0, i32x4.extract_lane(h0, 0), i32x4.extract_lane(h1, 0));
    if (blocks1 === done) place(1, i32x4.extract_lane(h0, 1), i32x4.extract_lane(h1, 1));
    if (blocks2 === done) place(2, i32x4.extract_lane(h0, 2), i32x4.extract_lane(h1, 2));
    if (blocks3 === done) place(3, i32x4.extract_lane(h0, 3), i32x4.extract_lane(h1, 3));
  }
}
