// Translates ClickHouse's `%` date formats to the templates of Postgres' to_char and to_timestamp.
import type { Span } from '../../ast/index.ts';
import { fault } from '../errors.ts';
import { WORK_LIMITS } from '../work.ts';

const OUTPUT: Readonly<Record<string, string>> = {
  a: 'Dy',
  b: 'Mon',
  c: 'FMMM',
  d: 'DD',
  D: 'MM/DD/YY',
  e: 'FMDD',
  f: 'US',
  F: 'YYYY-MM-DD',
  g: 'IY',
  G: 'IYYY',
  h: 'HH12',
  H: 'HH24',
  i: 'MI',
  I: 'HH12',
  j: 'DDD',
  k: 'FMHH24',
  l: 'FMHH12',
  m: 'MM',
  M: 'FMMonth',
  p: 'AM',
  Q: 'Q',
  r: 'HH12:MI AM',
  R: 'HH24:MI',
  s: 'SS',
  S: 'SS',
  T: 'HH24:MI:SS',
  u: 'ID',
  V: 'IW',
  W: 'FMDay',
  y: 'YY',
  Y: 'YYYY',
};

const INPUT: Readonly<Record<string, string>> = {
  ...OUTPUT,
  b: 'Mon',
  M: 'Month',
  W: 'Day',
  e: 'DD',
  c: 'MM',
  k: 'HH24',
  l: 'HH12',
};

export const outputFormat = (format: string, span?: Span): string => translate(format, OUTPUT, span);
export const inputFormat = (format: string, span?: Span): string => translate(format, INPUT, span);

function translate(format: string, table: Readonly<Record<string, string>>, span?: Span): string {
  if (format.length > WORK_LIMITS.format) {
    throw fault(`A format may have ${WORK_LIMITS.format} characters at most`, span);
  }
  return format.replace(
    /%([\s\S]?)|([^%]+)/g,
    (_found, letter: string | undefined, plain: string | undefined) => {
      if (plain !== undefined) return literal(plain);
      if (letter === '%') return literal('%');
      if (letter === 'n' || letter === 't') return literal(letter === 'n' ? '\n' : '\t');
      const picture = letter !== undefined && Object.hasOwn(table, letter) ? table[letter] : undefined;
      if (picture === undefined) throw fault(`Unknown format %${letter ?? ''}`, span);
      return picture;
    },
  );
}

const literal = (text: string): string => `"${text.replace(/[\\"]/g, '\\$&')}"`;
