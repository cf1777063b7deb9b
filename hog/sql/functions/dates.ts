import { coerced } from '../coerce.ts';
import { fault } from '../errors.ts';
import type { Place } from '../printer.ts';
import { digits, type Sql, sql } from '../sql.ts';
import { type Type, typeName, type Value } from '../types.ts';
import { shortFormat } from '../work.ts';
import { outputFormat } from './formats.ts';
import { back, INTERVALS, unitOf, wall } from './intervals.ts';
import { custom, type FunctionSpec, type FunctionTable, literalText, of } from './spec.ts';

const part = (make: (clock: Sql) => Sql): FunctionSpec =>
  custom(1, 2, ({ place, args, span }) => {
    const zone = args[1] ? coerced(place, args[1], 'string', span) : undefined;
    return { sql: sql`${make(wall(place, args[0]!, span, zone))}::bigint`, type: 'int' };
  });

const field = (name: Sql) => part((clock) => sql`extract(${name} from ${clock})`);
const seconds = part((clock) => sql`floor(extract(second from ${clock}))`);

/** Returns the start of a unit of time. It is a date for units of days or longer, as in ClickHouse. */
const startOf = (unit: Sql, type: 'date' | 'datetime'): FunctionSpec =>
  custom(1, 2, ({ place, args, span }) => {
    const zone = args[1] ? coerced(place, args[1], 'string', span) : place.printer.timezone;
    const start = sql`date_trunc(${unit}, ${wall(place, args[0]!, span, zone)})`;
    return type === 'date' ? { sql: sql`${start}::date`, type } : { sql: back(place, start, zone), type };
  });

const startOfWeek = custom(1, 3, ({ place, args, span }) => {
  const mode = args[1]?.literal ?? 0;
  const clock = wall(place, args[0]!, span);
  // In odd modes, weeks begin on Monday; in even modes, on Sunday.
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

const dateTrunc = custom(2, 3, ({ place, args, span }) => {
  const unit = unitOf(args[0], span);
  const zone = args[2] ? coerced(place, args[2], 'string', span) : place.printer.timezone;
  const start = sql`date_trunc(${unit.trunc}, ${wall(place, args[1]!, span, zone)})`;
  return unit.days
    ? { sql: sql`${start}::date`, type: 'date' }
    : { sql: back(place, start, zone), type: 'datetime' };
});

/** Implements toStartOfInterval(time, toIntervalX(n)). Intervals are counted from 1970. */
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

/** Implements toTimeZone. It returns the same instant: results are always printed in the time zone of the query. */
const toZone = custom(2, 2, ({ place, args, span }) => {
  if (args[0]!.type !== 'datetime') throw fault(`A ${typeName(args[0]!.type)} has no time zone`, span);
  return { sql: coerced(place, args[0]!, 'datetime', span), type: 'datetime' };
});

const yyyymm = part((clock) => sql`to_char(${clock}, 'YYYYMM')`);
const numbered = (picture: Sql) => part((clock) => sql`to_char(${clock}, ${picture})`);
export const DATES: FunctionTable = {
  ...INTERVALS,
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
    const moment = wall(place, args[0]!, span);
    // `hq.week` itself does not accept NULL.
    const known = sql`num_nulls(${moment}, ${mode}) = 0`;
    return { sql: sql`(case when ${known} then hq.week(${moment}, ${mode}) end)`, type: 'int' };
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
    sql: sql`to_char(${wall(place, args[0]!, span)}, ${shortFormat(coerced(place, args[1]!, 'string', span))})`,
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
    if (!Object.hasOwn(names, name))
      throw fault(`dateName does not support the part ${name.slice(0, 60)}`, span);
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
  fromUnixTimestamp: of('f', 'datetime', (number) => sql`hq.to_timestamp(floor(${number}))`),
  fromUnixTimestamp64Milli: of('f', 'datetime', (number) => sql`hq.to_timestamp(${number} / 1000)`),
  to_timestamp: of('f', 'datetime', (number) => sql`hq.to_timestamp(${number})`),
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
