import { SourceError } from '../errors.ts';
import { isRaw, type RawNode, type Reader, unexpected } from './reader.ts';

interface RawError {
  type?: unknown;
  message?: unknown;
  start?: { offset?: unknown };
  end?: { offset?: unknown };
}

/** A longer list of expected tokens does not help. */
const MAX_EXPECTED = 6;
const MAX_QUOTED = 40;

/** Reads the parser's answer to a text. Returns the tree, or throws the parser's error. */
export function answerOf(reader: Reader, text: string, json: string): RawNode {
  const raw: unknown = JSON.parse(json);
  if (typeof raw === 'object' && raw !== null && 'error' in raw) throw syntaxError(reader, text, raw);
  if (!isRaw(raw)) throw unexpected('answer', raw);
  return raw;
}

/** Converts an error of the parser to a SourceError with its place in the source. */
function syntaxError(reader: Reader, text: string, raw: object): SourceError {
  const { type, message, start, end } = raw as RawError;
  const from = reader.offset(typeof start?.offset === 'number' ? codePoints(text, start.offset) : 0);
  const to = reader.offset(typeof end?.offset === 'number' ? end.offset : 0);
  const told = typeof message === 'string' ? message : 'The source cannot be read';
  const atEnd = from >= reader.source.trimEnd().length;
  const reason = atEnd && told.startsWith('no viable') ? 'Unexpected end of the source' : told;
  const code = type === 'NotImplementedError' ? 'unsupported' : 'syntax';
  return new SourceError(code, readable(reason), reader.source, { start: from, end: Math.max(from, to) });
}

/**
 * Converts an error offset to code points. The parser counts the lines before the error in bytes and the rest in code
 * points.
 */
function codePoints(text: string, offset: number): number {
  let [bytes, points] = [0, 0];
  for (const line of text.split('\n')) {
    const length = Buffer.byteLength(line) + 1;
    if (bytes + length > offset) break;
    bytes += length;
    points += [...line].length + 1;
  }
  return points + offset - bytes;
}

/** Rewrites a message of the grammar for readers who do not know the grammar. */
function readable(message: string): string {
  const unsupported = /^Unsupported(?: rule)?: (?:ColumnExpr|SelectStmt\.)?(\w+)/.exec(message);
  if (unsupported) return `Not supported here: ${unsupported[1]}`;
  const alternative = /^no viable alternative at input '([\s\S]*)'$/.exec(message);
  if (alternative) return `Cannot make sense of ${quoted(alternative[1] as string)}`;
  const wrong = /^(?:mismatched|extraneous) input '([\s\S]*?)' expecting ([\s\S]+)$/.exec(message);
  if (wrong) return `Unexpected ${quoted(wrong[1] as string)}${expected(wrong[2] as string)}`;
  const missing = /^missing ([\s\S]+) at '([\s\S]*)'$/.exec(message);
  if (missing) return `Missing ${missing[1]} before ${quoted(missing[2] as string)}`;
  return message.length > 300 ? `${message.slice(0, 300)}…` : message;
}

function quoted(text: string): string {
  if (text === '<EOF>') return 'end of the source';
  const characters = [...text];
  return characters.length > MAX_QUOTED ? `'…${characters.slice(-MAX_QUOTED).join('')}'` : `'${text}'`;
}

function expected(list: string): string {
  const names = list.replace(/^\{|\}$/g, '').split(/, (?=')|(?<!'), /);
  if (names.length > MAX_EXPECTED) return '';
  return `, expected ${names.map((name) => (name === '<EOF>' ? 'the end of the source' : name)).join(' or ')}`;
}
