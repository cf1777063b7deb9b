import { nextTurn } from '../../db/loop-turns.ts';
import { DecodeError, MAX_DEPTH, MAX_VALUES, ONE_GO } from './limits.ts';
import { endOfString, type Obstacle, type Outline, obstacleOf, outline } from './outline.ts';

/** NaN or Infinity as a value of its own, not as a part of another word. */
const NO_NUMBER = /(?<![\w.+-])(?:NaN|-?Infinity)(?![\w.+-])/g;

/**
 * Replaces NaN, Infinity and -Infinity outside of strings by null. JSON does not know them, but Python's encoder writes
 * them, and one would make the whole batch invalid. Undefined if the text has none.
 */
function withoutNoNumbers(text: string): string | undefined {
  if (!text.includes('NaN') && !text.includes('Infinity')) return undefined;
  const mended = outsideStrings(text, (part) => part.replace(NO_NUMBER, 'null'));
  return mended === text ? undefined : mended;
}

/** Changes a JSON text everywhere but inside of its strings. */
function outsideStrings(text: string, change: (part: string) => string): string {
  const parts: string[] = [];
  for (let from = 0; from < text.length; ) {
    const quote = text.indexOf('"', from);
    const until = quote === -1 ? text.length : quote;
    const next = quote === -1 ? until : Math.min(endOfString(text, quote + 1) + 1, text.length);
    parts.push(change(text.slice(from, until)), text.slice(until, next));
    from = next;
  }
  return parts.join('');
}

/** Takes the place of an event that is never parsed, because it nests too deep or has too many values. */
export class Unparsed {
  readonly obstacle: Obstacle;

  constructor(obstacle: Obstacle) {
    this.obstacle = obstacle;
  }
}

const TOO_DEEP = Object.freeze(new Unparsed('too deep'));
const TOO_MANY_VALUES = Object.freeze(new Unparsed('too many values'));

/** Some parsed events of a body. */
interface Chunk {
  values: unknown[];
  /** Whether texts may hold characters that cannot be stored: NUL, half a surrogate pair. */
  mayNeedCleaning: boolean;
}

export interface Decoded {
  /** The parsed body. If `chunks` is set, an empty array takes the place of the events. */
  root: unknown;
  mayNeedCleaning: boolean;
  /** Whether bytes that are not UTF-8 were replaced by U+FFFD. */
  invalidUtf8: boolean;
  /** Whether each step with the body takes a turn of its own. */
  isLarge?: boolean;
  /** The events of a large body, parsed in parts so that other requests get their turn. */
  chunks?: () => AsyncGenerator<Chunk>;
  /** The number of events in `chunks`. */
  count?: number;
  /** The project key, if it came in a form field or around the payload. */
  formToken?: string | undefined;
}

const CHUNK = 256 * 1024;

/** NUL and half a surrogate pair can only come in as escapes. */
const UNSTORABLE = /\\u(?:0000|[dD][89a-fA-F])/;
const INTEGER = /^-?\d+$/;
/** The numbers of JSON outside of strings. */
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
/** A double holds every integer of fewer digits. */
const LONG = 16;

/** Few texts have such escapes at all, so a cheap search comes first. */
function mayNeedCleaning(text: string): boolean {
  return text.includes('\\u') && UNSTORABLE.test(text);
}

/**
 * Makes a text of a number that a double cannot hold (1e400), and of an integer that a double would change (2^53 + 1).
 * All others stay. JSON.parse with a function would do the same, several times slower.
 */
function quoteInexact(number: string): string {
  if (number.length < LONG && !/[eE]/.test(number)) return number;
  const value = Number(number);
  const isExact = Number.isFinite(value) && (Number.isSafeInteger(value) || !INTEGER.test(number));
  return isExact ? number : `"${number}"`;
}

function refusal(error: unknown): DecodeError {
  return new DecodeError(
    'invalid_json',
    `failed to parse request: the body is not valid JSON: ${(error as Error).message}`,
  );
}

const PLAIN = 0;
const INEXACT = 1;
const DEEP = 2;

/** Searches a parsed value for numbers that may have lost digits, and for more than `levels` levels. */
function inspect(value: object, levels: number): number {
  if (levels === 0) return DEEP;
  let found = PLAIN;
  const look = (one: unknown) => {
    if (typeof one === 'number') {
      if (!(one <= Number.MAX_SAFE_INTEGER && one >= Number.MIN_SAFE_INTEGER)) found |= INEXACT;
    } else if (typeof one === 'object' && one !== null) found |= inspect(one, levels - 1);
  };
  if (Array.isArray(value)) for (const one of value) look(one);
  // Objects from JSON.parse inherit nothing that can be enumerated.
  else for (const key in value) look((value as Record<string, unknown>)[key]);
  return found;
}

/** JSON.parse that also accepts NaN and Infinity, as Python writes them. */
function parseLeniently(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const mended = withoutNoNumbers(text);
    if (mended === undefined) throw error;
    return JSON.parse(mended);
  }
}

/** Parses a text and keeps its numbers exact. Returns TOO_DEEP if it nests too deep. */
function parseText(text: string): unknown {
  try {
    const value: unknown = parseLeniently(text);
    const found = typeof value === 'object' && value !== null ? inspect(value, MAX_DEPTH) : INEXACT;
    if (found === PLAIN) return value;
    if (found >= DEEP) return TOO_DEEP;
    const exact = (part: string) => part.replace(NUMBER, quoteInexact);
    return JSON.parse(outsideStrings(withoutNoNumbers(text) ?? text, exact));
  } catch (error) {
    throw refusal(error);
  }
}

async function* readElements(text: string, plan: Outline): AsyncGenerator<Chunk> {
  let values: unknown[] = [];
  let from = 0;
  for (let index = 0; index < plan.count; index += 1) {
    const [start, end, obstacle] = plan.element(index);
    if (values.length === 0) from = start;
    if (obstacle) values.push(obstacle === 'too deep' ? TOO_DEEP : TOO_MANY_VALUES);
    else values.push(parseText(text.slice(start, end)));
    if (end - from > CHUNK) {
      yield { values, mayNeedCleaning: mayNeedCleaning(text.slice(from, end)) };
      values = [];
      await nextTurn();
    }
  }
  if (values.length > 0) yield { values, mayNeedCleaning: mayNeedCleaning(text.slice(from)) };
}

/** Finds the events of a JSON text without parsing it, so that they can be parsed one by one. */
export async function readLargeJson(text: string, invalidUtf8: boolean): Promise<Decoded> {
  await nextTurn();
  const plan = await outline(text);
  const obstacle = obstacleOf(plan.rest);
  if (obstacle) {
    const { depth, values } = plan.rest;
    const what =
      obstacle === 'too deep'
        ? `nests ${depth} levels deep, at most ${MAX_DEPTH} are accepted`
        : `has about ${values} values, at most ${MAX_VALUES} are accepted in one event`;
    throw new DecodeError('invalid_json', `failed to parse request: the body ${what}`);
  }
  await nextTurn();
  const rest = plan.list ? text.slice(0, plan.list.start) + text.slice(plan.list.end) : text;
  const root = parseText(rest);
  // Each step with a large value takes as long again.
  await nextTurn();
  const decoded: Decoded = { root, mayNeedCleaning: mayNeedCleaning(rest), invalidUtf8, isLarge: true };
  await nextTurn();
  return plan.list ? { ...decoded, chunks: () => readElements(text, plan), count: plan.count } : decoded;
}

/** Parses JSON: in one go if that is fast and safe, or else event by event. */
export function readJson(text: string, invalidUtf8: boolean): Decoded | Promise<Decoded> {
  if (text.length > ONE_GO) return readLargeJson(text, invalidUtf8);
  const root = parseText(text);
  // Perhaps only one event of a list nests too deep. Then the others are kept.
  if (root === TOO_DEEP) return readLargeJson(text, invalidUtf8);
  return { root, mayNeedCleaning: mayNeedCleaning(text), invalidUtf8 };
}
