// Prints the constants of a source. Every one becomes a parameter.
import type { Constant, Span } from '../ast/index.ts';
import { fault } from './errors.ts';
import type { Printer } from './printer.ts';
import { type Sql, sql } from './sql.ts';
import type { Value } from './types.ts';

export function constantValue(printer: Printer, node: Constant): Value {
  const { value, span } = node;
  if (value === null) return { sql: sql`null`, type: 'null', literal: null };
  if (typeof value === 'boolean') {
    return { sql: value ? sql`true` : sql`false`, type: 'bool', literal: value, certain: true };
  }
  if (typeof value === 'string') return textValue(printer, value, span);
  return numberValue(printer, value, node.float ?? !Number.isInteger(value));
}

export function textValue(printer: Printer, value: string, span?: Span): Value {
  if (value.length > printer.limits.maxTextLength) {
    throw fault(`A text may have ${printer.limits.maxTextLength} characters at most`, span);
  }
  // Postgres cannot store such texts, so nothing stored can equal one.
  if (value.includes('\0') || !value.isWellFormed()) {
    throw fault('A text must not contain the character 0 or half a surrogate pair', span);
  }
  return { sql: printer.parameters.add('text', value), type: 'string', literal: value, certain: true };
}

export function numberValue(printer: Printer, value: number, float: boolean): Value {
  const whole = !float && Number.isSafeInteger(value);
  return {
    sql: printer.parameters.add(whole ? 'bigint' : 'float8', floatText(value)),
    type: whole ? 'int' : 'float',
    literal: value,
    certain: true,
  };
}

const floatText = (value: number): string =>
  Object.is(value, -0) ? '0' : value === Number.POSITIVE_INFINITY ? 'Infinity' : String(value);

const TIME =
  /^\s*(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)(Z|z|[+-]\d\d(?::?\d\d)?)?)?\s*$/;

/**
 * Prints a literal date as a parameter, so that an index on the column can be used. A date without an offset is in the
 * given time zone. A text that is not a date becomes NULL.
 */
export function timestampParameter(printer: Printer, text: string, zone: Sql): Sql {
  const match = TIME.exec(text);
  const [, day, time, offset] = match ?? [];
  if (day === undefined || !isCalendarDay(day) || (time !== undefined && !isTime(time))) {
    return sql`null::timestamptz`;
  }
  const local = `${day} ${(time ?? '00:00:00').replace(',', '.')}`;
  if (offset !== undefined) {
    const digits = offset.slice(1).replace(':', '').padEnd(4, '0');
    const fromUtc = /^z$/i.test(offset) ? '+00:00' : `${offset[0]}${digits.slice(0, 2)}:${digits.slice(2)}`;
    if (Number(fromUtc.slice(1, 3)) > 15 || Number(fromUtc.slice(4)) > 59) return sql`null::timestamptz`;
    return printer.parameters.add('timestamptz', local + fromUtc);
  }
  const parameter = printer.parameters.add('timestamp', local);
  return sql`(${parameter} at time zone ${zone})`;
}

function isCalendarDay(text: string): boolean {
  const [year, month, day] = text.split('-').map(Number) as [number, number, number];
  if (year === 0 || month < 1 || month > 12 || day < 1) return false;
  const date = new Date(0);
  date.setUTCFullYear(year, month, 0);
  return day <= date.getUTCDate();
}

const isTime = (text: string): boolean => {
  const [hour, minute, second] = text.split(/[:.,]/).map(Number) as [number, number, number?];
  return hour < 24 && minute < 60 && (second ?? 0) < 60;
};
