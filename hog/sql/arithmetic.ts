import type { ArithmeticOperator, Span } from '../ast/index.ts';
import { coerce, coerced } from './coerce.ts';
import { fault } from './errors.ts';
import type { Place } from './printer.ts';
import { type Sql, sql } from './sql.ts';
import { isDateTime, type Type, typeName, type Value } from './types.ts';
import { timeType, zoneOf } from './zones.ts';

const isTime = (type: Type): boolean => isDateTime(type) || type === 'date';

export function printArithmetic(
  place: Place,
  op: ArithmeticOperator,
  left: Value,
  right: Value,
  span?: Span,
): Value {
  if (left.type === 'interval' || right.type === 'interval' || isTime(left.type) || isTime(right.type)) {
    return timeArithmetic(place, op, left, right, span);
  }
  const [one, other] = [coerce(place, left, 'number', span), coerce(place, right, 'number', span)];
  const whole = one.type === 'int' && other.type === 'int';
  if (op === '/') {
    // Division always yields a float. Division by zero yields NULL.
    return { sql: sql`(${float(place, one)} / nullif(${float(place, other)}, 0))`, type: 'float' };
  }
  if (op === '%') {
    return whole
      ? { sql: sql`(${one.sql} % nullif(${other.sql}, 0))`, type: 'int' }
      : { sql: sql`hq.modulo(${float(place, one)}, ${float(place, other)})`, type: 'float' };
  }
  const certain = one.certain && other.certain ? { certain: true } : {};
  return whole
    ? { sql: sql`(${one.sql} ${SIGNS[op]} ${other.sql})`, type: 'int', ...certain }
    : { sql: sql`(${float(place, one)} ${SIGNS[op]} ${float(place, other)})`, type: 'float', ...certain };
}

const float = (place: Place, value: Value): Sql => coerced(place, value, 'float');

const SIGNS = { '+': sql`+`, '-': sql`-`, '*': sql`*` } as const;

function timeArithmetic(place: Place, op: ArithmeticOperator, left: Value, right: Value, span?: Span): Value {
  if (right.type === 'interval' && left.type === 'interval' && (op === '+' || op === '-')) {
    return { sql: sql`(${left.sql} ${SIGNS[op]} ${right.sql})`, type: 'interval' };
  }
  if (right.type === 'interval' && (op === '+' || op === '-')) {
    return addInterval(place, left, op === '-' ? sql`(- ${right.sql})` : right.sql, span);
  }
  if (left.type === 'interval' && op === '+') return addInterval(place, right, left.sql, span);
  if (op === '-' && isTime(left.type) && isTime(right.type)) {
    if (left.type === 'date' && right.type === 'date') {
      return { sql: sql`(${left.sql} - ${right.sql})::bigint`, type: 'int' };
    }
    const type = timeType(isDateTime(left.type) ? left : right);
    const [one, other] = [coerced(place, left, type), coerced(place, right, type)];
    return { sql: sql`extract(epoch from (${one} - ${other}))::float8`, type: 'float' };
  }
  if (op === '+' || op === '-') {
    const [time, number] = isTime(left.type) ? [left, right] : [right, left];
    if (!isTime(number.type) && number.type !== 'interval' && (op === '+' || time === left)) {
      const amount = coerced(place, number, 'float', span);
      const signed = op === '-' ? sql`(- ${amount})` : amount;
      // A number counts days on dates and seconds on times, as in ClickHouse.
      const interval = time.type === 'date' ? sql`hq.days(${signed})` : sql`hq.seconds(${signed})`;
      return addInterval(place, time, interval, span);
    }
  }
  throw fault(`${op} does not work between ${typeName(left.type)} and ${typeName(right.type)}`, span);
}

/**
 * Adds an interval to a time. Days and months follow the wall clock of the time's zone. A date plus whole days
 * stays a date.
 */
export function addInterval(place: Place, time: Value, interval: Sql, span?: Span): Value {
  if (time.type === 'date') {
    return { sql: sql`hq.date_add(${time.sql}, ${interval})`, type: 'date' };
  }
  const type = timeType(time);
  const zone = zoneOf(place.printer, type);
  return { sql: sql`hq.datetime_add(${coerced(place, time, type, span)}, ${interval}, ${zone})`, type };
}
