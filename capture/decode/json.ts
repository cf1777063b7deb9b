import { setImmediate as nextTurn } from 'node:timers/promises';
import { DecodeError, MAX_DEPTH } from './limits.ts';
import { endOfString, type Outline, outline } from './outline.ts';

/** Where a value may stand, and as no part of anything else. */
const NO_NUMBER = /(?<![\w.+-])(?:NaN|-?Infinity)(?![\w.+-])/g;

/**
 * JSON text with null in place of NaN, Infinity and -Infinity, which JSON does not know and Python's encoder writes: one
 * of them would cost the whole batch that it stands in. Undefined when there is none; what stands in strings stays.
 */
function withoutNoNumbers(text: string): string | undefined {
  if (!text.includes('NaN') && !text.includes('Infinity')) return undefined;
  const parts: string[] = [];
  let found = false;
  for (let from = 0; from < text.length; ) {
    const quote = text.indexOf('"', from);
    const until = quote === -1 ? text.length : quote;
    const before = text.slice(from, until);
    const after = before.replace(NO_NUMBER, 'null');
    found ||= after !== before;
    from = quote === -1 ? until : Math.min(endOfString(text, quote + 1) + 1, text.length);
    parts.push(after, text.slice(until, from));
  }
  return found ? parts.join('') : undefined;
}

/** In place of an event that nests too deep; it is never parsed. */
export const TOO_DEEP = Object.freeze({ tooDeep: true });

/** Several events of a body, as parsed. */
interface Chunk {
  values: unknown[];
  /** Whether texts may hold what cannot be stored: NUL, half a surrogate pair. */
  mayNeedCleaning: boolean;
}

export interface Decoded {
  /** The body; when `chunks` is there, with an empty array in place of the events. */
  root: unknown;
  mayNeedCleaning: boolean;
  /** Bytes that were replaced by U+FFFD because they are no UTF-8. */
  invalidUtf8: boolean;
  /** The events of a large body, parsed a part at a time so that other requests get their turn. */
  chunks?: () => AsyncGenerator<Chunk>;
  /** How many there are, with `chunks`. */
  count?: number;
  /** The key, where it came in a form field next to the body. */
  formToken?: string | undefined;
}

/** A body up to this size is parsed in one go: some milliseconds. */
const ONE_GO = 512 * 1024;
const CHUNK = 256 * 1024;

/** `\u0000`, and each half of a surrogate pair, can only come in as escapes. */
const UNSTORABLE = /\\u(?:0000|[dD][89a-fA-F])/;
const INTEGER = /^-?\d+$/;

/** Few texts hold an escape of this kind at all, which is quicker to find out. */
function mayNeedCleaning(text: string): boolean {
  return text.includes('\\u') && UNSTORABLE.test(text);
}

/**
 * The rule for numbers: one that a double cannot hold (1e400), or an integer that it would change (2^53 + 1), is kept
 * as its text. Everything else is a number.
 */
function keepExact(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number' || context?.source === undefined) return value;
  if (!Number.isFinite(value)) return context.source;
  return !Number.isSafeInteger(value) && INTEGER.test(context.source) ? context.source : value;
}

function refusal(error: unknown): DecodeError {
  return new DecodeError(`failed to parse request: the body is not valid JSON: ${(error as Error).message}`);
}

const PLAIN = 0;
const INEXACT = 1;
const DEEP = 2;

/** Looks through a parsed value for numbers that may have lost digits, and for more levels than are left. */
function inspect(value: object, levels: number): number {
  if (levels === 0) return DEEP;
  let found = PLAIN;
  const look = (one: unknown) => {
    if (typeof one === 'number') {
      if (!(one <= Number.MAX_SAFE_INTEGER && one >= Number.MIN_SAFE_INTEGER)) found |= INEXACT;
    } else if (typeof one === 'object' && one !== null) found |= inspect(one, levels - 1);
  };
  if (Array.isArray(value)) for (const one of value) look(one);
  // What JSON.parse makes inherits nothing that can be enumerated.
  else for (const key in value) look((value as Record<string, unknown>)[key]);
  return found;
}

/** JSON.parse, which also takes what Python writes for numbers that are none. */
function parseLeniently(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const mended = withoutNoNumbers(text);
    if (mended === undefined) throw error;
    return JSON.parse(mended);
  }
}

/** A text as a value, its numbers exact; TOO_DEEP when it nests deeper than anything may. */
function parseText(text: string): unknown {
  try {
    const value: unknown = parseLeniently(text);
    const found = typeof value === 'object' && value !== null ? inspect(value, MAX_DEPTH) : INEXACT;
    if (found === PLAIN) return value;
    // Only here, as JSON.parse with a function recurses.
    return found >= DEEP ? TOO_DEEP : JSON.parse(withoutNoNumbers(text) ?? text, keepExact);
  } catch (error) {
    throw refusal(error);
  }
}

async function* readElements(text: string, plan: Outline): AsyncGenerator<Chunk> {
  let values: unknown[] = [];
  let from = 0;
  for (let index = 0; index < plan.count; index += 1) {
    const [start, end, deep] = plan.element(index);
    if (values.length === 0) from = start;
    values.push(deep ? TOO_DEEP : parseText(text.slice(start, end)));
    if (end - from > CHUNK) {
      yield { values, mayNeedCleaning: mayNeedCleaning(text.slice(from, end)) };
      values = [];
      await nextTurn();
    }
  }
  if (values.length > 0) yield { values, mayNeedCleaning: mayNeedCleaning(text.slice(from)) };
}

/** JSON text into values: in one go where that is quick and safe, else event by event. */
export async function readLargeJson(text: string, invalidUtf8: boolean): Promise<Decoded> {
  const plan = await outline(text);
  if (plan.restDepth > MAX_DEPTH) {
    throw new DecodeError(
      `failed to parse request: the body nests ${plan.restDepth} levels deep, at most ${MAX_DEPTH} are accepted`,
    );
  }
  const rest = plan.list ? text.slice(0, plan.list.start) + text.slice(plan.list.end) : text;
  const decoded: Decoded = {
    root: parseText(rest),
    mayNeedCleaning: mayNeedCleaning(rest),
    invalidUtf8,
  };
  return plan.list ? { ...decoded, chunks: () => readElements(text, plan), count: plan.count } : decoded;
}

export function readJson(text: string, invalidUtf8: boolean): Decoded | Promise<Decoded> {
  if (text.length > ONE_GO) return readLargeJson(text, invalidUtf8);
  const root = parseText(text);
  // One event of a list may be the deep one: the others are to be had.
  if (root === TOO_DEEP) return readLargeJson(text, invalidUtf8);
  return { root, mayNeedCleaning: mayNeedCleaning(text), invalidUtf8 };
}
