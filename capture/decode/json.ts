import { setImmediate as nextTurn } from 'node:timers/promises';
import { DecodeError, MAX_DEPTH } from './limits.ts';
import { type Outline, outline } from './outline.ts';

/** In place of an event that nests too deep; it is never parsed. */
export const TOO_DEEP = Object.freeze({ tooDeep: true });

/** Several events of a body, as parsed. */
export interface Chunk {
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
  /** The key, where it came in a form field next to the body. */
  formToken?: string | undefined;
}

/** A body up to this size is parsed in one go: some milliseconds. */
const ONE_GO = 512 * 1024;
const CHUNK = 256 * 1024;

/** `\u0000`, and each half of a surrogate pair, can only come in as escapes. */
const UNSTORABLE = /\\u(?:0000|[dD][89a-fA-F])/;
/** Numbers that a double may not hold: sixteen digits and more, or an exponent of three digits. */
const LONG_NUMBER = /[:,[\s]-?(?:\d{16}|\d+(?:\.\d+)?[eE]\+?\d{3})/;
const INTEGER = /^-?\d+$/;

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

function parseText(text: string): unknown {
  try {
    return LONG_NUMBER.test(text) ? JSON.parse(text, keepExact) : JSON.parse(text);
  } catch (error) {
    throw refusal(error);
  }
}

/** Whether there are so few brackets that the text cannot nest too deep. */
function isPlainlyShallow(text: string): boolean {
  let brackets = 0;
  for (const bracket of ['{', '[']) {
    let index = text.indexOf(bracket);
    while (index !== -1) {
      brackets += 1;
      if (brackets > MAX_DEPTH) return false;
      index = text.indexOf(bracket, index + 1);
    }
  }
  return true;
}

async function* readElements(text: string, plan: Outline): AsyncGenerator<Chunk> {
  let values: unknown[] = [];
  let from = 0;
  for (let index = 0; index < plan.count; index += 1) {
    const [start, end, deep] = plan.element(index);
    if (values.length === 0) from = start;
    values.push(deep ? TOO_DEEP : parseText(text.slice(start, end)));
    if (end - from > CHUNK) {
      yield { values, mayNeedCleaning: UNSTORABLE.test(text.slice(from, end)) };
      values = [];
      await nextTurn();
    }
  }
  if (values.length > 0) yield { values, mayNeedCleaning: UNSTORABLE.test(text.slice(from)) };
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
    mayNeedCleaning: UNSTORABLE.test(rest),
    invalidUtf8,
  };
  return plan.list ? { ...decoded, chunks: () => readElements(text, plan) } : decoded;
}

export function readJson(text: string, invalidUtf8: boolean): Decoded | Promise<Decoded> {
  if (text.length > ONE_GO || !isPlainlyShallow(text)) return readLargeJson(text, invalidUtf8);
  return { root: parseText(text), mayNeedCleaning: UNSTORABLE.test(text), invalidUtf8 };
}
