// Dates and times. Days, weeks and months begin where they begin in the statement's time zone.
import type { Span } from '../../ast/index.ts';
import { addInterval } from '../arithmetic.ts';
import { coerced } from '../coerce.ts';
import { fault, suggestion } from '../errors.ts';
import type { Place } from '../printer.ts';
import { digits, type Sql, sql } from '../sql.ts';
import { type Type, typeName, type Value } from '../types.ts';
import { outputFormat } from './formats.ts';
import { custom, type FunctionSpec, type FunctionTable, literalText, of } from './spec.ts';

/** A wall clock (timestamp without zone) of the statement's zone, or of the one given. */
function wall(place: Place, value: Value, span?: Span, zone: Sql = place.printer.timezone): Sql {
  if (value.type === 'date') return sql`(${value.sql})::timestamp`;
  return sql`(${coerced(place, value, 'datetime', span)} at time zone ${zone})`;
}

const back = (place: Place, clock: Sql, zone: Sql = place.printer.timezone): Sql =>
  sql`(${clock} at time zone ${zone})`;

const part = (make: (clock: Sql) => Sql): FunctionSpec =>
  custom(1, 2, ({ place, args, span }) => {
    const zone = args[1] ? coerced(place, args[1], 'string', span) : undefined;
    return { sql: sql`${make(wall(place, args[0]!, span, zone))}::bigint`, type: 'int' };
  });

const field = (name: Sql) => part((clock) => sql`extract(${name} from ${clock})`);
const seconds = part((clock) => sql`floor(extract(second from ${clock}))`);

/** The beginning of a unit; a date for units of days and more, as in ClickHouse. */
const startOf = (unit: Sql, type: 'date' | 'datetime'): FunctionSpec =>
  custom(1, 2, ({ place, args, span }) => {
    const zone = args[1] ? coerced(place, args[1], 'string', span) : place.printer.timezone;
    const start = sql`date_trunc(${unit}, ${wall(place, args[0]!, span, zone)})`;
    return type === 'date' ? { sql: sql`${start}::date`, type } : { sql: back(place, start, zone), type };
  });

const startOfWeek = custom(1, 3, ({ place, args, span }) => {
  const mode = args[1]?.literal ?? 0;
  const clock = wall(place, args[0]!, span);
  // Odd modes begin weeks on Monday, even ones on Sunday.
  const monday = typeof mode === 'number' && mode % 2 === 1;
  const start = monday
    ? sql`date_trunc('week', ${clock})`
    : sql`(date_trunc('week', ${clock} + interval '1 day') - interval '1 day')`;
  return { sql: sql`${start}::date`, type: 'date' };
});

const every = (interval: Sql): FunctionSpec =>
  custom(1, 1, ({ place, args, span }) => ({
    sql: back(place, sql`date_bin(${interval}, ${wall(place, args[0]!, span)}, timestamp '1970-01-01')`),
    type: 'datetime',
  }));

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

function unitOf(value: Value | undefined, span?: Span) {
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

/** addDays(time, n), subtractMonths(time, n) … */
function shift(unit: string, sign: Sql): FunctionSpec {
  const known = UNITS.get(unit)!;
  return custom(2, 2, ({ place, args, span }) => {
    const [time, amount] = args as [Value, Value];
    const whole = time.type === 'date' && !known.days;
    return addInterval(
      place,
      whole ? { sql: coerced(place, time, 'datetime', span), type: 'datetime' } : dated(place, time, span),
      intervalOf(place, known, amount, sign, span),
      span,
    );
  });
}

const dated = (place: Place, value: Value, span?: Span): Value =>
  value.type === 'date' ? value : { sql: coerced(place, value, 'datetime', span), type: 'datetime' };

/** date_add('day', 3, time), date_add(time, interval) */
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
    const fine =
      time.type === 'date' && !unit.days
        ? { sql: coerced(place, time, 'datetime'), type: 'datetime' as Type }
        : time;
    return addInterval(place, fine, intervalOf(place, unit, args[1]!, sign, span), span);
  });

const toInterval = (unit: string): FunctionSpec =>
  custom(1, 1, ({ place, args, span }) => ({
    sql: intervalOf(place, UNITS.get(unit)!, args[0]!, PLUS, span),
    type: 'interval',
  }));

/** Boundaries that were crossed, not time that went by. */
const dateDiff = custom(3, 4, ({ place, args, span }) => {
  const name = literalText(args[0], 'The unit', span);
  const unit = unitOf(args[0], span);
  void name;
  const zone = args[3] ? coerced(place, args[3], 'string', span) : undefined;
  const [from, to] = [wall(place, args[1]!, span, zone), wall(place, args[2]!, span, zone)];
  return { sql: sql`hq.date_diff(${unit.trunc}, ${from}, ${to})`, type: 'int' };
});

/** Whole units that went by. */
const age = custom(3, 4, ({ place, args, span }) => {
  const unit = unitOf(args[0], span);
  const [from, to] = [wall(place, args[1]!, span), wall(place, args[2]!, span)];
  return { sql: sql`hq.age(${unit.trunc}, ${from}, ${to})`, type: 'int' };
});

const dateTrunc = custom(2, 3, ({ place, args, span }) => {
  const unit = unitOf(args[0], span);
  const zone = args[2] ? coerced(place, args[2], 'string', span) : place.printer.timezone;
  const start = sql`date_trunc(${unit.trunc}, ${wall(place, args[1]!, span, zone)})`;
  return unit.days
    ? { sql: sql`${start}::date`, type: 'date' }
    : { sql: back(place, start, zone), type: 'datetime' };
});

/** toStartOfInterval(time, toIntervalX(n)): whole multiples since 1970. */
const startOfInterval = custom(2, 3, ({ place, args, span }) => {
  const [value, interval] = args as [Value, Value];
  if (interval.type !== 'interval') throw fault('An interval is needed here', span);
  return {
    sql: back(place, sql`hq.start_of_interval(${wall(place, value, span)}, ${interval.sql})`),
    type: 'datetime',
  };
});

const format = custom(2, 3, ({ place, args, span }) => {
  const picture = place.printer.parameters.add(
    'text',
    outputFormat(literalText(args[1], 'The format', span), span),
  );
  const zone = args[2] ? coerced(place, args[2], 'string', span) : place.printer.timezone;
  return { sql: sql`to_char(${wall(place, args[0]!, span, zone)}, ${picture})`, type: 'string' };
});

const unix = custom(1, 2, ({ place, args, span }) => ({
  sql: sql`floor(extract(epoch from ${coerced(place, args[0]!, 'datetime', span)}))::bigint`,
  type: 'int',
}));

const current = (make: (place: Place) => Sql, type: Type): FunctionSpec =>
  custom(0, 1, ({ place }) => ({ sql: make(place), type, certain: true }));

const today = (days: number) => (place: Place) =>
  sql`((now() at time zone ${place.printer.timezone})::date - ${digits(days)})`;

/** The same instant: only what is printed of it would differ, and that is the statement's zone here. */
const toZone = custom(2, 2, ({ place, args, span }) => {
  if (args[0]!.type !== 'datetime') throw fault(`A ${typeName(args[0]!.type)} has no time zone`, span);
  return { sql: coerced(place, args[0]!, 'datetime', span), type: 'datetime' };
});

const yyyymm = part((clock) => sql`to_char(${clock}, 'YYYYMM')`);
const numbered = (picture: Sql) => part((clock) => sql`to_char(${clock}, ${picture})`);
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

export const DATES: FunctionTable = {
  now: current(() => sql`date_trunc('second', now())`, 'datetime'),
  now64: current(() => sql`now()`, 'datetime'),
  today: current(today(0), 'date'),
  yesterday: current(today(1), 'date'),
  toYear: field(sql`year`),
  toQuarter: field(sql`quarter`),
  toMonth: field(sql`month`),
  toDayOfMonth: field(sql`day`),
  toDayOfYear: field(sql`doy`),
  toDayOfWeek: field(sql`isodow`),
  toHour: field(sql`hour`),
  toMinute: field(sql`minute`),
  toSecond: seconds,
  toISOWeek: field(sql`week`),
  toISOYear: field(sql`isoyear`),
  toWeek: custom(1, 2, ({ place, args, span }) => {
    const mode = args[1] ? coerced(place, args[1], 'int', span) : sql`0::bigint`;
    return { sql: sql`hq.week(${wall(place, args[0]!, span)}, ${mode})`, type: 'int' };
  }),
  toYYYYMM: yyyymm,
  toYYYYMMDD: numbered(sql`'YYYYMMDD'`),
  toYYYYMMDDhhmmss: numbered(sql`'YYYYMMDDHH24MISS'`),
  toStartOfYear: startOf(sql`'year'`, 'date'),
  toStartOfQuarter: startOf(sql`'quarter'`, 'date'),
  toStartOfMonth: startOf(sql`'month'`, 'date'),
  toStartOfISOYear: custom(1, 1, ({ place, args, span }) => ({
    sql: sql`hq.start_of_iso_year(${wall(place, args[0]!, span)})`,
    type: 'date',
  })),
  toMonday: startOf(sql`'week'`, 'date'),
  toStartOfWeek: startOfWeek,
  toStartOfDay: startOf(sql`'day'`, 'datetime'),
  toStartOfHour: startOf(sql`'hour'`, 'datetime'),
  toStartOfMinute: startOf(sql`'minute'`, 'datetime'),
  toStartOfSecond: startOf(sql`'second'`, 'datetime'),
  toStartOfFiveMinutes: every(sql`interval '5 minutes'`),
  toStartOfFiveMinute: every(sql`interval '5 minutes'`),
  toStartOfTenMinutes: every(sql`interval '10 minutes'`),
  toStartOfFifteenMinutes: every(sql`interval '15 minutes'`),
  toStartOfInterval: startOfInterval,
  date_bin: custom(2, 3, ({ place, args, span }) => {
    const [interval, value, origin] = args as [Value, Value, Value | undefined];
    if (interval.type !== 'interval') throw fault('An interval is needed here', span);
    const from = origin ? wall(place, origin, span) : sql`timestamp '1970-01-01'`;
    return {
      sql: back(place, sql`date_bin(${interval.sql}, ${wall(place, value, span)}, ${from})`),
      type: 'datetime',
    };
  }),
  toLastDayOfMonth: custom(1, 1, ({ place, args, span }) => ({
    sql: sql`(date_trunc('month', ${wall(place, args[0]!, span)}) + interval '1 month - 1 day')::date`,
    type: 'date',
  })),
  dateTrunc,
  date_trunc: dateTrunc,
  formatDateTime: format,
  to_char: custom(2, 2, ({ place, args, span }) => ({
    sql: sql`to_char(${wall(place, args[0]!, span)}, ${coerced(place, args[1]!, 'string', span)})`,
    type: 'string',
  })),
  dateName: custom(2, 2, ({ place, args, span }) => {
    const names: Record<string, Sql> = {
      month: sql`'FMMonth'`,
      weekday: sql`'FMDay'`,
      year: sql`'YYYY'`,
      day: sql`'FMDD'`,
    };
    const name = literalText(args[0], 'The part', span).toLowerCase();
    if (!Object.hasOwn(names, name)) throw fault(`There is no name of ${name.slice(0, 60)}`, span);
    return { sql: sql`to_char(${wall(place, args[1]!, span)}, ${names[name]!})`, type: 'string' };
  }),
  monthName: custom(1, 1, ({ place, args, span }) => ({
    sql: sql`to_char(${wall(place, args[0]!, span)}, 'FMMonth')`,
    type: 'string',
  })),
  toUnixTimestamp: unix,
  toUnixTimestamp64Milli: custom(1, 1, ({ place, args, span }) => ({
    sql: sql`floor(extract(epoch from ${coerced(place, args[0]!, 'datetime', span)}) * 1000)::bigint`,
    type: 'int',
  })),
  fromUnixTimestamp: of('f', 'datetime', (number) => sql`to_timestamp(floor(${number}))`),
  fromUnixTimestamp64Milli: of('f', 'datetime', (number) => sql`to_timestamp(${number} / 1000)`),
  to_timestamp: of('f', 'datetime', (number) => sql`to_timestamp(${number})`),
  ...forUnits('add', 's', (unit) => shift(unit, PLUS)),
  ...forUnits('subtract', 's', (unit) => shift(unit, MINUS)),
  ...forUnits('toInterval', '', toInterval),
  dateAdd: addUnits(PLUS),
  date_add: addUnits(PLUS),
  timestampAdd: addUnits(PLUS),
  dateSub: addUnits(MINUS),
  date_subtract: addUnits(MINUS),
  date_sub: addUnits(MINUS),
  timestampSub: addUnits(MINUS),
  dateDiff,
  date_diff: dateDiff,
  age,
  toTimeZone: toZone,
  toTimezone: toZone,
  timezone: custom(0, 2, ({ place, args, span }) => {
    if (args.length === 0) return { sql: place.printer.timezone, type: 'string', certain: true };
    if (args.length !== 2) throw fault('timezone takes a zone and a time', span);
    return { sql: coerced(place, args[1]!, 'datetime', span), type: 'datetime' };
  }),
  make_date: of('i i i', 'date', (year, month, day) => sql`hq.make_date(${year}, ${month}, ${day})`),
  makeDate: of('i i i', 'date', (year, month, day) => sql`hq.make_date(${year}, ${month}, ${day})`),
  make_timestamp: custom(6, 6, ({ place, args, span }) => ({
    sql: back(
      place,
      sql`hq.make_timestamp(${args
        .map((one) => coerced(place, one, 'float', span))
        .reduce((left, right) => sql`${left}, ${right}`)})`,
    ),
    type: 'datetime',
  })),
};
