import { createHash } from 'node:crypto';

/** A filter is divided by the first bits of hashes into so many rows. */
export const PARTS = 16_384;
/** An id in a block: its uuid and its timestamp. */
export const ID_BYTES = 24;
const UUID_BYTES = 16;

/** The id whose hash tells whether Postgres hashes as this code does. */
export const SAMPLE = { projectId: 1, uuid: '01234567-89ab-4cde-8f01-23456789abcd' };

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

const TWO_7 = 2 ** 7;
const PROBES = 4;
const PROBE_BITS = 25;
const PROBE_MASK = 2 ** PROBE_BITS - 1;

/** A Bloom filter in parts of the same size. `event_id_may_be_in` of the database asks it. */
export class IdFilter {
  readonly #bits: Buffer;
  readonly #partBytes: number;
  readonly #hash: Hash = { high: 0, low: 0 };

  constructor(ids: number, bitsForId: number) {
    this.#partBytes = Math.max(1, Math.ceil((ids * bitsForId) / PARTS / 8));
    this.#bits = Buffer.alloc(PARTS * this.#partBytes);
  }

  /** Adds the ids of a block. */
  addBlock(projectId: number, ids: Buffer): void {
    const [hash, bits, size] = [this.#hash, this.#bits, this.#partBytes * 8];
    for (let at = 0; at < ids.length; at += ID_BYTES) {
      hashId(ids, at, projectId, hash);
      const begin = (hash.high >>> 18) * this.#partBytes;
      let position = hash.low & PROBE_MASK;
      // The next 25 bits: 7 of the low half and 18 of the high one.
      const step = (hash.low >>> PROBE_BITS) + (hash.high & 0x3ffff) * TWO_7;
      for (let probe = 0; probe < PROBES; probe += 1) {
        const bit = position % size;
        bits[begin + (bit >> 3)] = (bits[begin + (bit >> 3)] as number) | (1 << (bit & 7));
        position += step;
      }
    }
  }

  part(number: number): Buffer {
    return this.#bits.subarray(number * this.#partBytes, (number + 1) * this.#partBytes);
  }
}

/** The digest of the rows of a filter. */
export const DIGEST_SQL = `md5(string_agg(md5(bits), '' order by part))`;

/** Makes the same digest of rows that are given in their order. */
export function createDigest() {
  const whole = createHash('md5');
  return {
    add: (row: Buffer) => void whole.update(createHash('md5').update(row).digest('hex')),
    value: () => whole.digest('hex'),
  };
}
