/** A filter is divided by the first 16 bits of hashes into so many rows; `event_id_part` of the database chooses the row. */
export const PARTS = 65_536;
/** An id in a block: its uuid and its timestamp. */
export const ID_BYTES = 24;
const UUID_BYTES = 16;

const BEGIN = 0x9e3779b9 + UUID_BYTES + 3_923_095;
const rotated = (value: number, by: number): number => (value << by) | (value >>> (32 - by));

/** A hash of 64 bits, as two numbers of 32 bits. */
export interface Hash {
  high: number;
  low: number;
}

/**
 * What `uuid_hash_extended(uuid, projectId)` of Postgres returns for the uuid at this place: Bob Jenkins's lookup3 of 16 bytes. The
 * project must not be negative. Writes into `hash`, because it is asked for millions.
 */
export function hashId(bytes: Buffer, at: number, projectId: number, hash: Hash): void {
  let a = BEGIN | 0;
  let b = a;
  let c = a;
  const mix = () => {
    a = ((a - c) ^ rotated(c, 4)) | 0;
    c = (c + b) | 0;
    b = ((b - a) ^ rotated(a, 6)) | 0;
    a = (a + c) | 0;
    c = ((c - b) ^ rotated(b, 8)) | 0;
    b = (b + a) | 0;
    a = ((a - c) ^ rotated(c, 16)) | 0;
    c = (c + b) | 0;
    b = ((b - a) ^ rotated(a, 19)) | 0;
    a = (a + c) | 0;
    c = ((c - b) ^ rotated(b, 4)) | 0;
    b = (b + a) | 0;
  };
  if (projectId !== 0) {
    b = (b + projectId) | 0;
    mix();
  }
  a = (a + bytes.readInt32LE(at)) | 0;
  b = (b + bytes.readInt32LE(at + 4)) | 0;
  c = (c + bytes.readInt32LE(at + 8)) | 0;
  mix();
  a = (a + bytes.readInt32LE(at + 12)) | 0;
  c = ((c ^ b) - rotated(b, 14)) | 0;
  a = ((a ^ c) - rotated(c, 11)) | 0;
  b = ((b ^ a) - rotated(a, 25)) | 0;
  c = ((c ^ b) - rotated(b, 16)) | 0;
  a = ((a ^ c) - rotated(c, 4)) | 0;
  b = ((b ^ a) - rotated(a, 14)) | 0;
  c = ((c ^ b) - rotated(b, 24)) | 0;
  hash.high = b >>> 0;
  hash.low = c >>> 0;
}

/** The hash of a certain id, as Postgres writes a bigint: it tells whether a filter was made by a Postgres that hashes as this code does. */
export function sampleHash(): string {
  const bytes = Buffer.from('0123456789ab4cde8f0123456789abcd', 'hex');
  const hash: Hash = { high: 0, low: 0 };
  hashId(bytes, 0, 1, hash);
  return BigInt.asIntN(64, (BigInt(hash.high) << 32n) | BigInt(hash.low)).toString();
}

const WORD_BYTES = 8;
const BITS = 0x3f;

/**
 * Some of the parts of a Bloom filter, of the same size each. An id has three bits in each of two words of its part, so that most
 * questions are answered by one word. `sealed_event_ids` of the database asks it.
 */
export class IdFilter {
  /** The words of the parts, as Postgres sends them. */
  readonly #bits: Buffer;
  readonly #from: number;
  readonly #to: number;
  /** A mask. */
  readonly #all: number;
  readonly words: number;
  readonly #hash: Hash = { high: 0, low: 0 };

  /** With the parts from `from` to before `to`, of `all`. */
  constructor(words: number, { from, to, all }: { from: number; to: number; all: number }) {
    [this.words, this.#from, this.#to, this.#all] = [words, from, to, all - 1];
    this.#bits = Buffer.alloc((to - from) * words * WORD_BYTES);
  }

  /** Adds the ids of a block. */
  addBlock(projectId: number, ids: Buffer): void {
    const hash = this.#hash;
    for (let at = 0; at < ids.length; at += ID_BYTES) {
      hashId(ids, at, projectId, hash);
      const { high, low } = hash;
      const part = (high >>> 16) & this.#all;
      if (part < this.#from || part >= this.#to) continue;
      const begin = (part - this.#from) * this.words;
      const one = begin + ((((high & 0xffff) << 8) | (low >>> 24)) % this.words);
      this.#set(one, low & BITS);
      this.#set(one, (low >>> 6) & BITS);
      this.#set(one, (low >>> 12) & BITS);
      const other = begin + ((low & 0xffffff) % this.words);
      this.#set(other, ((high << 2) | (low >>> 30)) & BITS);
      this.#set(other, (high >>> 4) & BITS);
      this.#set(other, (high >>> 10) & BITS);
    }
  }

  #set(word: number, bit: number): void {
    const at = word * WORD_BYTES + 7 - (bit >> 3);
    this.#bits[at] = (this.#bits[at] as number) | (1 << (bit & 7));
  }

  /** The words of so many parts from this one on, one part after the other. */
  parts(from: number, count: number): Buffer {
    const bytes = this.words * WORD_BYTES;
    return this.#bits.subarray((from - this.#from) * bytes, (from - this.#from + count) * bytes);
  }
}

/** So many words has each part of a filter of so many ids. */
export const wordsFor = (ids: number, bitsForId: number, parts: number): number =>
  Math.max(1, Math.ceil((ids * bitsForId) / parts / WORD_BYTES / 8));

/** The digest of the rows of a filter. */
export const DIGEST_SQL = `md5(string_agg(md5(array_send(bits)), '' order by part))`;
