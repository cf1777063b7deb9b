import type { Span } from './ast/index.ts';

/**
 * The reason why a source text was refused:
 *
 * - `syntax`: the text is not valid in the language
 * - `unsupported`: the grammar allows it, but Sluice cannot run it
 * - `compile`: the program has no meaning (undeclared variable, index 0, …)
 * - `too_large`, `too_deep`, `timeout`: the text exceeds a limit of the parser
 * - `busy`: too many texts are waiting for the parser
 */
export type SourceErrorCode =
  | 'syntax'
  | 'unsupported'
  | 'compile'
  | 'too_large'
  | 'too_deep'
  | 'timeout'
  | 'busy';

export interface Place {
  /** Counted from 1. */
  line: number;
  /** Counted from 1, in characters (code points). */
  column: number;
  /** The line with a caret under the place. A long line is cut to the part around the place. */
  excerpt: string;
}

const EXCERPT_WIDTH = 100;

/** An error in a source text. `reason` is the plain sentence; `message` adds the line and column. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
  readonly code: SourceErrorCode;
  readonly reason: string;
  readonly span: Span | null;
  readonly line: number | null;
  readonly column: number | null;
  readonly excerpt: string | null;

  constructor(code: SourceErrorCode, reason: string, source?: string, span?: Span | null) {
    const place = source === undefined || !span ? null : placeOf(source, span.start);
    super(place ? `${reason} (line ${place.line}, column ${place.column})` : reason);
    this.code = code;
    this.reason = reason;
    this.span = span ?? null;
    this.line = place?.line ?? null;
    this.column = place?.column ?? null;
    this.excerpt = place?.excerpt ?? null;
  }

  /** The message, and below it the line with a mark under the place. */
  get withExcerpt(): string {
    return this.excerpt === null ? this.message : `${this.message}\n${this.excerpt}`;
  }

  /** Returns the same error with its line and column in the source. */
  in(source: string): SourceError {
    return this.line === null ? new SourceError(this.code, this.reason, source, this.span) : this;
  }
}

/** Returns the line, the column and an excerpt for an offset (in UTF-16 units) of a text. */
export function placeOf(source: string, offset: number): Place {
  const at = Math.max(0, Math.min(offset, source.length));
  const lineStart = source.lastIndexOf('\n', at - 1) + 1;
  const nextBreak = source.indexOf('\n', at);
  const lineEnd = nextBreak === -1 ? source.length : nextBreak;
  let line = 1;
  for (let i = source.indexOf('\n'); i !== -1 && i < lineStart; i = source.indexOf('\n', i + 1)) line++;
  const before = [...source.slice(lineStart, at)];
  // Only the text around the place is split, because a line can be as long as the whole source.
  const after = [...source.slice(at, Math.min(lineEnd, at + 2 * EXCERPT_WIDTH))];
  const from = Math.max(0, before.length - EXCERPT_WIDTH / 2);
  const shown = before.slice(from).concat(after).slice(0, EXCERPT_WIDTH);
  const text = shown.map(printable).join('');
  const lead = from > 0 ? '…' : '';
  const caret = ' '.repeat(lead.length + before.length - from);
  const tail = from + shown.length < before.length + after.length ? '…' : '';
  return { line, column: before.length + 1, excerpt: `${lead}${text}${tail}\n${caret}^` };
}

/** Returns the beginning of a line, where only the line is known. */
export function lineExcerpt(line: string): string {
  const shown = [...line.slice(0, 2 * EXCERPT_WIDTH)].slice(0, EXCERPT_WIDTH).map(printable).join('');
  return line.length > shown.length ? `${shown}…` : shown;
}

/** Returns how many of sorted numbers are below another one. */
function countBelow(sorted: readonly number[], limit: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as number) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns a function that finds the lines and columns of many offsets of one text, as `placeOf` does. */
export function placesOf(source: string): (offset: number) => { line: number; column: number } {
  const lines = [0];
  for (let i = source.indexOf('\n'); i !== -1; i = source.indexOf('\n', i + 1)) lines.push(i + 1);
  // Two units make one character.
  const pairs = Array.from(source.matchAll(/[\ud800-\udbff][\udc00-\udfff]/g), ({ index }) => index);
  return (offset) => {
    const line = countBelow(lines, offset + 1);
    const start = lines[line - 1] as number;
    return { line, column: offset - start - countBelow(pairs, offset) + countBelow(pairs, start) + 1 };
  };
}

/** Replaces characters that do not take exactly one column, so that the caret stands under the right character. */
const printable = (character: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are the characters to replace
  /[\u0000-\u001f\u007f-\u009f\u2028\u2029\ud800-\udfff]/u.test(character) ? ' ' : character;
