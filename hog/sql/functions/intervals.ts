// Functions that add intervals to times and measure the time between them.
import type { Span } from '../../ast/index.ts';
import { addInterval } from '../arithmetic.ts';
import { coerced } from '../coerce.ts';
import { fault, suggestion } from '../errors.ts';
import type { Place } from '../printer.ts';
import { type Sql, sql } from '../sql.ts';
import type { DateTime, Value } from '../types.ts';
import { timeType, zoneOf } from '../zones.ts';
import { custom, type FunctionSpec, type FunctionTable, literalText, zoneAt } from './spec.ts';

/** Converts a time to a wall clock (timestamp without zone). By default it is the clock of the zone of the time. */
export function wall(place: Place, value: Value, span?: Span, type: DateTime = timeType(value)): Sql {
  if (value.type === 'date') return sql`(${value.sql})::timestamp`;
  return sql`(${coerced(place, value, 'datetime', span)} at time zone ${zoneOf(place.printer, type)})`;
}

/** Converts what the clock of a zone shows to a time in that zone. */
export const back = (place: Place, clock: Sql, type: DateTime): Value => ({
  sql: sql`(${clock} at time zone ${zoneOf(place.printer, type)})`,
  type,
});

export const UNITS: ReadonlyMap<string, { interval: Sql; days: boolean; trunc: Sql }> = new Map([
  ['microsecond', { interval: sql`hq.seconds(0.000001 * `, days: false, trunc: sql`'microsecond'` }],
  ['millisecond', { interval: sql`hq.seconds(0.001 * `, days: false, trunc: sql`'millisecond'` }],
  ['second', { interval: sql`hq.seconds(`, days: false, trunc: sql`'second'` }],
  ['minute', { interval: sql`hq.seconds(60 * `, days: false, trunc: sql`'minute'` }],
  ['hour', { interval: sql`hq.seconds(3600 * `, days: false, trunc: sql`'hour'` }],
  ['day', { interval: sql`hq.days(`, days: true, trunc: sql`'day'` }],
  ['week', { interval: sql`hq.days(7 * `, days: true, trunc: sql`'week'` }],
  ['month', { interval: sql`hq.months(`, days: true, trunc: sql`'month'` }],
  ['quarter', { interval: sql`hq.months(3 * `, days: true, trunc: sql`'quarter'` }],
  ['year', { interval: sql`hq.months(12 * `, days: true, trunc: sql`'year'` }],
]);

const UNIT_ALIASES: Readonly<Record<string, string>> = {
  s: 'second',
  ss: 'second',
  m: 'minute',
  mi: 'minute',
  n: 'minute',
  h: 'hour',
  hh: 'hour',
  d: 'day',
  dd: 'day',
  wk: 'week',
  ww: 'week',
  mm: 'month',
  q: 'quarter',
  qq: 'quarter',
  yy: 'year',
  yyyy: 'year',
};

export function unitOf(value: Value | undefined, span?: Span) {
  const name = literalText(value, 'The unit', span).toLowerCase();
  const known = Object.hasOwn(UNIT_ALIASES, name) ? (UNIT_ALIASES[name] as string) : name.replace(/s$/, '');
  const unit = UNITS.get(known);
  if (!unit) throw fault(`Unknown unit '${name.slice(0, 60)}'${suggestion(name, UNITS.keys())}`, span);
  return unit;
}

const intervalOf = (place: Place, unit: { interval: Sql }, amount: Value, sign: Sql, span?: Span): Sql =>
  sql`${unit.interval}${sign}${coerced(place, amount, 'float', span)})`;

const PLUS = sql``;
const MINUS = sql`-1 * `;

/** Implements addDays(time, n), subtractMonths(time, n) and the like. */
function shift(unit: string, sign: Sql): FunctionSpec {
  const known = UNITS.get(unit)!;
  return custom(2, 2, ({ place, args, span }) => {
    const [time, amount] = args as [Value, Value];
    const whole = time.type === 'date' && !known.days;
    return addInterval(
      place,
      whole ? timed(place, time, span) : dated(place, time, span),
      intervalOf(place, known, amount, sign, span),
      span,
    );
  });
}

const timed = (place: Place, value: Value, span?: Span): Value => ({
  sql: coerced(place, value, 'datetime', span),
  type: timeType(value),
});

const dated = (place: Place, value: Value, span?: Span): Value =>
  value.type === 'date' ? value : timed(place, value, span);

/** Implements date_add('day', 3, time) and date_add(time, interval). */
const addUnits = (sign: Sql): FunctionSpec =>
  custom(2, 3, ({ place, args, span }) => {
    if (args.length === 2) {
      const [one, other] = args as [Value, Value];
      const [time, interval] = one.type === 'interval' ? [other, one] : [one, other];
      if (interval.type !== 'interval') throw fault('An interval is needed here', span);
      return addInterval(
        place,
        dated(place, time, span),
        sign === MINUS ? sql`(- ${interval.sql})` : interval.sql,
        span,
      );
    }
    const unit = unitOf(args[0], span);
    const time = dated(place, args[2]!, span);
    const fine = time.type === 'date' && !unit.days ? timed(place, time) : time;
    return addInterval(place, fine, intervalOf(place, unit, args[1]!, sign, span), span);
  });

const toInterval = (unit: string): FunctionSpec =>
  custom(1, 1, ({ place, args, span }) => ({
    sql: intervalOf(place, UNITS.get(unit)!, args[0]!, PLUS, span),
    type: 'interval',
  }));

/** Implements dateDiff. It counts the unit boundaries between two times, not the time that passed. */
const dateDiff = between(sql`hq.date_diff`);

/** Implements age. It counts the whole units that passed. */
const age = between(sql`hq.age`);

/** Measures from one clock to another. Without a zone as the last argument, each time has its own. */
function between(name: Sql): FunctionSpec {
  return custom(3, 4, (call) => {
    const { place, args, span } = call;
    const unit = unitOf(args[0], span);
    const zone = zoneAt(call, 3);
    const [from, to] = [wall(place, args[1]!, span, zone), wall(place, args[2]!, span, zone)];
    return { sql: sql`${name}(${unit.trunc}, ${from}, ${to})`, type: 'int' };
  });
}

const names = [
  'Microsecond',
  'Millisecond',
  'Second',
  'Minute',
  'Hour',
  'Day',
  'Week',
  'Month',
  'Quarter',
  'Year',
];
const forUnits = (prefix: string, suffix: string, make: (unit: string) => FunctionSpec): FunctionTable =>
  Object.fromEntries(names.map((name) => [prefix + name + suffix, make(name.toLowerCase())]));

export const INTERVALS: FunctionTable = {
  ...forUnits('add', 's', (unit) => shift(unit, PLUS)),
  ...forUnits('subtract', 's', (unit) => shift(unit, MINUS)),
  ...forUnits('toInterval', '', toInterval),
  dateAdd: addUnits(PLUS),
  date_add: addUnits(PLUS),
  timestampAdd: addUnits(PLUS),
  timeStampAdd: addUnits(PLUS),
  dateSub: addUnits(MINUS),
  date_subtract: addUnits(MINUS),
  date_sub: addUnits(MINUS),
  timestampSub: addUnits(MINUS),
  timeStampSub: addUnits(MINUS),
  dateDiff,
  date_diff: dateDiff,
  age,
};
