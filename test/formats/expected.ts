import type { Column } from '../../formats/columns.ts';
import { FOREVER, NEVER, type Row, type Value } from './copy-binary.ts';

// What the files should say, worked out the slow way.

const DAY = 86_400_000_000n;
/** The calendar repeats after 400 years. */
const CYCLE = 146_097n * DAY;

/** A timestamp as ISO 8601 with microseconds; the years beyond four digits with sign and six. */
export function shownInstant(micros: bigint): string {
  if (micros === FOREVER) return 'infinity';
  if (micros === NEVER) return '-infinity';
  let cycles = 0n;
  let within = micros;
  for (; within >= CYCLE; within -= CYCLE) cycles += 1n;
  for (; within < 0n; within += CYCLE) cycles -= 1n;
  const millis = new Date(Number(within / 1000n)).toISOString();
  const year = Number(millis.slice(0, 4)) + Number(cycles) * 400;
  const digits = year < 0 || year > 9999 ? 6 : 4;
  const sign = year < 0 ? '-' : year > 9999 ? '+' : '';
  const rest = String(within % 1000n).padStart(3, '0');
  return `${sign}${String(Math.abs(year)).padStart(digits, '0')}${millis.slice(4, -1)}${rest}Z`;
}

const realText = (value: number) => (Object.is(value, -0) ? '-0' : String(value));

function jsonValue(type: Column['type'], value: Value): string {
  if (value === null) return 'null';
  switch (type) {
    case 'json':
      return (value as string).replace(/[\n\r\t]/g, ' ');
    case 'timestamp':
      return JSON.stringify(shownInstant(value as bigint));
    case 'float64':
      return Number.isFinite(value) ? realText(value as number) : JSON.stringify(String(value));
    case 'int64':
      return String(value);
    default:
      return JSON.stringify(value);
  }
}

export const jsonLine = (columns: readonly Column[], row: Row): string =>
  `{${columns.map(({ name, type }, index) => `${JSON.stringify(name)}:${jsonValue(type, row[index] as Value)}`).join(',')}}\n`;

function csvValue(type: Column['type'], value: Value): string {
  if (value === null) return '';
  const plain = type === 'timestamp' ? shownInstant(value as bigint) : String(value);
  if (type === 'float64') return realText(value as number);
  if (type !== 'string' && type !== 'json' && type !== 'strings') return plain;
  const text = type === 'strings' ? JSON.stringify(value) : plain;
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csvLine = (columns: readonly Column[], row: Row): string =>
  `${columns.map(({ type }, index) => csvValue(type, row[index] as Value)).join(',')}\r\n`;

/** What a reader of Parquet gives; timestamps in microseconds, those too late for it as the last there is. */
export function parquetValue(type: Column['type'], value: Value): unknown {
  if (value === null) return null;
  if (type === 'timestamp') {
    if (value === NEVER) return NEVER + 1n;
    return (value as bigint) > FOREVER ? FOREVER : value;
  }
  return value;
}
