// Writes arrays as parameters in Postgres's binary form. In text form, each element would be escaped here and parsed
// there, which is most of the cost of a statement with thousands of elements.
import { uuidBytes } from './uuid-bytes.ts';

const OIDS = { bool: 16, timestamptz: 1184, int4: 23, int8: 20, text: 25, uuid: 2950, jsonb: 3802 };
const HEADER = 20;
const NULL_LENGTH = -1;
const JSONB_VERSION = 1;
const TWO_32 = 2 ** 32;
const EPOCH_2000 = 946_684_800_000;

/**
 * Allocates an array with one dimension and writes its header. `room` is the size of the elements without their
 * lengths.
 */
function begin(oid: number, count: number, room: number, hasNulls = false): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER + count * 4 + room);
  // An empty array has no dimension.
  bytes.writeInt32BE(count > 0 ? 1 : 0, 0);
  bytes.writeInt32BE(hasNulls ? 1 : 0, 4);
  bytes.writeInt32BE(oid, 8);
  bytes.writeInt32BE(count, 12);
  bytes.writeInt32BE(1, 16);
  return bytes;
}

const end = (bytes: Buffer, count: number, at: number): Buffer => bytes.subarray(0, count > 0 ? at : 12);

/** Writes elements that all have the same size. Undefined becomes null. */
function fixed<T>(
  oid: number,
  size: number,
  elements: readonly (T | undefined)[],
  write: (bytes: Buffer, at: number, element: T) => void,
): Buffer {
  const bytes = begin(oid, elements.length, elements.length * size, elements.includes(undefined));
  let at = HEADER;
  for (const element of elements) {
    bytes.writeInt32BE(element === undefined ? NULL_LENGTH : size, at);
    at += 4;
    if (element === undefined) continue;
    write(bytes, at, element);
    at += size;
  }
  return end(bytes, elements.length, at);
}

export const int4Array = (elements: readonly number[]): Buffer =>
  fixed(OIDS.int4, 4, elements, (bytes, at, element) => bytes.writeInt32BE(element, at));

/** Whole numbers that are exact in JavaScript. */
export const int8Array = (elements: readonly (number | undefined)[]): Buffer =>
  fixed(OIDS.int8, 8, elements, (bytes, at, element) => {
    const high = Math.floor(element / TWO_32);
    bytes.writeInt32BE(high, at);
    bytes.writeUInt32BE(element - high * TWO_32, at + 4);
  });

export const booleanArray = (elements: readonly boolean[]): Buffer =>
  fixed(OIDS.bool, 1, elements, (bytes, at, element) => bytes.writeUInt8(element ? 1 : 0, at));

/** Instants in whole milliseconds since 1970. */
export const timestampArray = (elements: readonly number[]): Buffer =>
  fixed(OIDS.timestamptz, 8, elements, (bytes, at, element) =>
    bytes.writeBigInt64BE(BigInt(Math.trunc(element) - EPOCH_2000) * 1000n, at),
  );

export const uuidArray = (elements: readonly (string | undefined)[]): Buffer =>
  fixed(OIDS.uuid, 16, elements, (bytes, at, element) => {
    if (!uuidBytes(element, bytes, at)) throw new TypeError(`not a uuid: ${element}`);
  });

/** The first bytes of each step through `bytes` are an element. */
function stepping(oid: number, size: number, bytes: Buffer, step: number): Buffer {
  const count = bytes.length / step;
  const array = begin(oid, count, count * size);
  let at = HEADER;
  for (let from = 0; from < bytes.length; from += step) {
    array.writeInt32BE(size, at);
    bytes.copy(array, at + 4, from, from + size);
    at += 4 + size;
  }
  return end(array, count, at);
}

/** Uuids that lie in `bytes` as Postgres sends them, one at the beginning of each step. */
export const uuidsWithin = (bytes: Buffer, step: number): Buffer => stepping(OIDS.uuid, 16, bytes, step);

/** Numbers that lie in `bytes` as Postgres sends them, one after the other. */
export const int8sWithin = (bytes: Buffer): Buffer => stepping(OIDS.int8, 8, bytes, 8);

function texts(oid: number, prefix: number | undefined, elements: readonly string[]): Buffer {
  const extra = prefix === undefined ? 0 : 1;
  const lengths = elements.map((text) => Buffer.byteLength(text) + extra);
  const bytes = begin(
    oid,
    elements.length,
    lengths.reduce((sum, length) => sum + length, 0),
  );
  let at = HEADER;
  for (const [index, text] of elements.entries()) {
    const length = lengths[index] as number;
    bytes.writeInt32BE(length, at);
    if (prefix !== undefined) bytes[at + 4] = prefix;
    bytes.write(text, at + 4 + extra);
    at += 4 + length;
  }
  return end(bytes, elements.length, at);
}

/** Stands for no text in an array of texts, which holds no nulls. */
export const NO_TEXT = '';

export const textArray = (elements: readonly string[]): Buffer => texts(OIDS.text, undefined, elements);

/** JSON texts. */
export const jsonbArray = (elements: readonly string[]): Buffer => texts(OIDS.jsonb, JSONB_VERSION, elements);
