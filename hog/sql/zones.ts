// Time zones of expressions. A time is an instant; the zone in its type decides what its clock shows.
import { databaseZone, isIanaZone } from '../../values/zones.ts';
import type { Expr, Span } from '../ast/index.ts';
import { fault, quote, suggestion } from './errors.ts';
import type { Printer } from './printer.ts';
import type { Sql } from './sql.ts';
import { type DateTime, isDateTime, isZoned, type Type, type Value } from './types.ts';

/** Prints the zone of a time for Postgres: the one in its type, or that of the query. */
export const zoneOf = (printer: Printer, type: Type): Sql =>
  isZoned(type) ? printer.parameters.add('text', databaseZone(type.datetime)) : printer.timezone;

/** Prints the name that the zone of a time was given. */
export const zoneNameOf = (printer: Printer, type: Type): Sql =>
  printer.parameters.add('text', isZoned(type) ? type.datetime : printer.options.timezone);

/** Returns the type of a value as a time. What is not a time yet becomes one in the zone of the query. */
export const timeType = (value: Value): DateTime => (isDateTime(value.type) ? value.type : 'datetime');

/** Returns the type of times in a named zone. */
export function zonedType(printer: Printer, name: string, span?: Span): DateTime {
  // The zone of the query itself is good in any spelling: the project has chosen it.
  if (name !== printer.options.timezone && !isIanaZone(name)) {
    throw fault(
      `Unknown time zone ${quote(name)}${suggestion(name, Intl.supportedValuesOf('timeZone'))}`,
      span,
    );
  }
  return { datetime: name };
}

/** Returns the type of times in the zone that an argument names, or undefined if the argument is left out. */
export function zoneArgument(
  printer: Printer,
  value: Value | undefined,
  node: Expr | undefined,
  span?: Span,
): DateTime | undefined {
  if (!value) return undefined;
  const place = node?.span ?? span;
  if (typeof value.literal !== 'string') throw fault("The time zone must be a text literal, as 'UTC'", place);
  return zonedType(printer, value.literal, place);
}
