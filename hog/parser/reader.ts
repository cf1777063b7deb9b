import type { Span, Statement } from '../ast/index.ts';
import { SourceError } from '../errors.ts';

/** A node of the parser's JSON. */
export interface RawNode {
  node: string;
  start?: { offset: number };
  end?: { offset: number };
  [key: string]: unknown;
}

/** The state of the conversion of one text: the text, its offsets and the current depth. */
export interface Reader {
  source: string;
  /** Converts an offset of the parser (code points, prefix included) to an offset in the source (UTF-16 units). */
  offset(raw: number): number;
  depth: number;
  maxDepth: number;
  /** Returns the statement that a marker stands for, or null if the node is not a marker. */
  filled?(raw: RawNode): Statement | null;
}

/** The position of a parsed text in the source. */
export interface Origin {
  /** The offset in the source, in UTF-16 units. */
  start: number;
  /** The length of the prefix that was added for the parser. */
  prefix: number;
}

export function createReader(source: string, maxDepth: number, origin: Partial<Origin> = {}): Reader {
  return createReaders(source, maxDepth)(origin);
}

/** Returns a function that creates readers for parts of one source. */
export function createReaders(source: string, maxDepth: number): (origin: Partial<Origin>) => Reader {
  const table = /[\ud800-\udfff]/.test(source) ? codePointOffsets(source) : null;
  return ({ start = 0, prefix = 0 }) => {
    // The number of code points before the start, minus the prefix.
    const shift = (table ? indexOf(table, start) : start) - prefix;
    const offset = (raw: number) => {
      const index = Math.max(0, raw + shift);
      return table ? (table[Math.min(index, table.length - 1)] as number) : Math.min(index, source.length);
    };
    return { source, offset, depth: 0, maxDepth };
  };
}

/** Returns the index of the code point that starts at an offset. */
function indexOf(offsets: Uint32Array, offset: number): number {
  let [low, high] = [0, offsets.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((offsets[middle] as number) < offset) low = middle + 1;
    else high = middle;
  }
  return low;
}

function codePointOffsets(source: string): Uint32Array {
  const offsets = new Uint32Array(source.length + 1);
  let count = 0;
  let at = 0;
  for (const character of source) {
    offsets[count++] = at;
    at += character.length;
  }
  offsets[count++] = at;
  return offsets.subarray(0, count);
}

export function spanOf(reader: Reader, raw: RawNode): Span | null {
  if (typeof raw.start?.offset !== 'number' || typeof raw.end?.offset !== 'number') return null;
  const start = reader.offset(raw.start.offset);
  return Object.freeze({ start, end: Math.max(start, reader.offset(raw.end.offset)) });
}

/** Runs `convert` one level deeper. The limit keeps later recursive walks over the tree from overflowing the stack. */
export function deeper<T>(reader: Reader, raw: RawNode, convert: () => T): T {
  if (++reader.depth > reader.maxDepth) {
    throw new SourceError(
      'too_deep',
      `The source is nested more than ${reader.maxDepth} levels deep`,
      reader.source,
      spanOf(reader, raw) ?? { start: 0, end: 0 },
    );
  }
  const result = convert();
  reader.depth--;
  return result;
}

export function isRaw(value: unknown): value is RawNode {
  return typeof value === 'object' && value !== null && typeof (value as RawNode).node === 'string';
}

/**
 * Creates the error for JSON of the parser that this module does not know. It is a bug in Sluice, never an error in the
 * source.
 */
export function unexpected(what: string, value: unknown): Error {
  return new TypeError(`The parser gave an unexpected ${what}: ${JSON.stringify(value)?.slice(0, 200)}`);
}

export function nodeAt(raw: RawNode, key: string): RawNode {
  const value = raw[key];
  if (!isRaw(value)) throw unexpected(`${raw.node}.${key}`, value);
  return value;
}

export function optionalNode(raw: RawNode, key: string): RawNode | null {
  return raw[key] === null || raw[key] === undefined ? null : nodeAt(raw, key);
}

export function listAt(raw: RawNode, key: string): RawNode[] {
  const value = raw[key];
  if (!Array.isArray(value) || !value.every(isRaw)) throw unexpected(`${raw.node}.${key}`, value);
  return value;
}

export function optionalList(raw: RawNode, key: string): RawNode[] | null {
  return raw[key] === null || raw[key] === undefined ? null : listAt(raw, key);
}

export function stringAt(raw: RawNode, key: string): string {
  const value = raw[key];
  if (typeof value !== 'string') throw unexpected(`${raw.node}.${key}`, value);
  return value;
}

export function optionalString(raw: RawNode, key: string): string | null {
  return raw[key] === null || raw[key] === undefined ? null : stringAt(raw, key);
}

export function stringsAt(raw: RawNode, key: string): string[] {
  const value = raw[key];
  if (!Array.isArray(value) || !value.every((one) => typeof one === 'string')) {
    throw unexpected(`${raw.node}.${key}`, value);
  }
  return Object.freeze(value) as string[];
}

export function optionalStrings(raw: RawNode, key: string): string[] | null {
  return raw[key] === null || raw[key] === undefined ? null : stringsAt(raw, key);
}

export function numberAt(raw: RawNode, key: string): number {
  const value = raw[key];
  if (typeof value !== 'number') throw unexpected(`${raw.node}.${key}`, value);
  return value;
}

export const flag = (raw: RawNode, key: string): boolean => raw[key] === true;
