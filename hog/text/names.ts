import { KEYWORDS } from '../parser/tokens.ts';

/** Writes a name, quoted where the language needs it. */
export const name = (text: string): string =>
  text === '*' || (PLAIN.test(text) && !isTaken(text)) ? text : `\`${escaped(text).replaceAll('`', '``')}\``;

/** Writes a text literal. */
export const literal = (text: string): string => `'${escaped(text).replaceAll("'", "\\'")}'`;

const PLAIN = /^[A-Za-z_$][A-Za-z0-9_$]*$/;
/** Keywords that are common names. The parser reads them as names wherever a name can stand. */
const COMMON = new Set(
  'current date day filter first hour id key last minute month name quarter sample second step time timestamp week year zone'.split(
    ' ',
  ),
);
const isTaken = (text: string): boolean =>
  /^(?:true|false)$/i.test(text) || (KEYWORDS.has(text.toLowerCase()) && !COMMON.has(text.toLowerCase()));

const ESCAPES: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\0': '\\0',
};

function escaped(text: string): string {
  let out = '';
  for (const letter of text) out += ESCAPES[letter] ?? letter;
  return out;
}
