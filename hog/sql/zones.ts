// Time zones of expressions. A time is an instant; the zone in its type decides what its clock shows.
import { isIanaZone } from '../../values/zones.ts';
import type { Expr, Span } from '../ast/index.ts';
import { fault, quote, suggestion } from './errors.ts';
import type { Printer } from './printer.ts';
import type { Sql } from './sql.ts';
import { type DateTime, isDateTime, isZoned, type Type, type Value } from './types.ts';

/** Prints the zone of a time: the one in its type, or that of the query. */
export const zoneOf = (printer: Printer, type: Type): Sql =>
  isZoned(type) ? printer.parameters.add('text', type.datetime) : printer.timezone;

/** Returns the type of a value as a time. What is not a time yet becomes one in the zone of the query. */
export const timeType = (value: Value): DateTime => (isDateTime(value.type) ? value.type : 'datetime');

/** Names of zones that Postgres reads as offsets, without summer time. */
const OFFSETS: ReadonlySet<string> = new Set(['CET', 'EET', 'MET', 'WET']);

/** Returns the type of times in a named zone. The name must be one that Postgres knows too. */
export function zonedType(printer: Printer, name: string, span?: Span): DateTime {
  // The zone of the query itself is good in any spelling: the project has chosen it.
  if (name !== printer.options.timezone && !isQueryZone(name)) {
    throw fault(
      `Unknown time zone ${quote(name)}${suggestion(name, Intl.supportedValuesOf('timeZone'))}`,
      span,
    );
  }
  return { datetime: name };
}

/** Returns whether a query can name the zone. */
export const isQueryZone = (name: string): boolean => isIanaZone(name) && !OFFSETS.has(name);

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
