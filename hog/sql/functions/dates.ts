// Functions for dates and times. A time shows the clock of the zone in its type, see zones.ts.
import { coerce, coerced } from '../coerce.ts';
import { fault, quote, suggestion } from '../errors.ts';
import { digits, join, NOTHING, type Sql, sql } from '../sql.ts';
import { type DateTime, isDateTime, typeName, type Value } from '../types.ts';
import { shortFormat } from '../work.ts';
import { timeType, zoneNameOf, zoneOf } from '../zones.ts';
import { outputFormat } from './formats.ts';
import { back, INTERVALS, UNITS, unitOf, wall } from './intervals.ts';
import {
  custom,
  type FunctionCall,
  type FunctionSpec,
  type FunctionTable,
  literalCount,
  literalText,
  of,
  zoneAt,
} from './spec.ts';
import { TIME_WINDOWS } from './time-windows.ts';

/** Returns the type of the times that a function makes: in the zone that an argument names, or else in that of its time. */
const resultAt = (call: FunctionCall, zone: number, time = 0): DateTime =>
  zoneAt(call, zone) ?? timeType(call.args[time]!);

const part = (make: (clock: Sql) => Sql): FunctionSpec =>
  custom(1, 2, (call) => ({
    sql: sql`${make(wall(call.place, call.args[0]!, call.span, resultAt(call, 1)))}::bigint`,
    type: 'int',
  }));

const field = (name: Sql) => part((clock) => sql`extract(${name} from ${clock})`);
const seconds = part((clock) => sql`floor(extract(second from ${clock}))`);

/** Declares a function that makes a date of a clock. */
const day = (make: (clock: Sql) => Sql): FunctionSpec =>
  custom(1, 2, (call) => ({
    sql: make(wall(call.place, call.args[0]!, call.span, resultAt(call, 1))),
    type: 'date',
  }));

/** Declares a function that makes a time of a clock, in the same zone. */
const moment = (make: (clock: Sql) => Sql): FunctionSpec =>
  custom(1, 2, (call) => {
    const type = resultAt(call, 1);
    return back(call.place, make(wall(call.place, call.args[0]!, call.span, type)), type);
  });

/** Return the start of a unit of time. It is a date for units of days or longer, as in ClickHouse. */
const startDay = (unit: Sql) => day((clock) => sql`date_trunc(${unit}, ${clock})::date`);
const startOf = (unit: Sql) => moment((clock) => sql`date_trunc(${unit}, ${clock})`);

/** The most of the modes that ClickHouse has for weeks. */
const MODES = 9;

/** Declares a function that makes a date of the week of a time: so many days after its beginning. */
const dayOfWeek = (days: Sql): FunctionSpec =>
  custom(1, 3, (call) => {
    const { place, args, span } = call;
    const mode = args[1] ? literalCount(args[1], 'The mode of a week', 0, MODES, span) : 0;
    const clock = wall(place, args[0]!, span, resultAt(call, 2));
    // In odd modes, weeks begin on Monday; in even modes, on Sunday.
    const start =
      mode % 2 === 1
        ? sql`date_trunc('week', ${clock})`
        : sql`(date_trunc('week', ${clock} + interval '1 day') - interval '1 day')`;
    return { sql: sql`(${start}::date + ${days})`, type: 'date' };
  });

const every = (interval: Sql) =>
  moment((clock) => sql`date_bin(${interval}, ${clock}, timestamp '1970-01-01')`);

/** Implements dateTrunc('day', time). It is a date for units longer than a day, and for days of dates. */
const dateTrunc = custom(2, 3, (call) => {
  const { place, args, span } = call;
  const unit = unitOf(args[0], span);
  const type = resultAt(call, 2, 1);
  const start = sql`date_trunc(${unit.trunc}, ${wall(place, args[1]!, span, type)})`;
  const isDate = unit.days && (unit !== UNITS.get('day') || args[1]!.type === 'date');
  return isDate ? { sql: sql`${start}::date`, type: 'date' } : back(place, start, type);
});

/** Returns the start of the interval that a time lies in. Without an origin, intervals are counted from 1970. */
function intervalStart(
  { place, span }: FunctionCall,
  value: Value,
  { interval, origin, type }: { interval: Value; origin: Value | undefined; type: DateTime },
): Value {
  if (interval.type !== 'interval') throw fault('An interval is needed here', span);
  const from = origin ? sql`, ${wall(place, origin, span, type)}` : NOTHING;
  const clock = wall(place, value, span, type);
  return back(place, sql`hq.start_of_interval(${clock}, ${interval.sql}${from})`, type);
}

/** Implements toStartOfInterval(time, interval, origin, zone). Both last arguments can be left out. */
const startOfInterval = custom(2, 4, (call) => {
  const { args } = call;
  const [value, interval, third] = args as [Value, Value, Value | undefined];
  const origin = third && (isDateTime(third.type) || third.type === 'date' || args[3]) ? third : undefined;
  return intervalStart(call, value, { interval, origin, type: resultAt(call, origin ? 3 : 2) });
});

/** Implements date_bin(interval, time, origin). */
const bin = custom(2, 3, (call) => {
  const [interval, value, origin] = call.args as [Value, Value, Value | undefined];
  return intervalStart(call, value, { interval, origin, type: timeType(value) });
});

/** The parts of a time by their names in SQL. */
const PARTS: ReadonlyMap<string, Sql> = new Map([
  ['year', sql`year`],
  ['quarter', sql`quarter`],
  ['month', sql`month`],
  ['week', sql`week`],
  ['day', sql`day`],
  ['dow', sql`isodow`],
  ['doy', sql`doy`],
  ['hour', sql`hour`],
  ['minute', sql`minute`],
]);

/** Implements date_part('year', time). Days of the week count from 1, which is Monday. */
const datePart = custom(2, 2, ({ place, args, span }) => {
  const name = literalText(args[0], 'The part', span).toLowerCase();
  const clock = wall(place, args[1]!, span);
  if (name === 'second') return { sql: sql`floor(extract(second from ${clock}))::bigint`, type: 'int' };
  const known = PARTS.get(name);
  if (!known) {
    throw fault(`Unknown part ${quote(name)}${suggestion(name, [...PARTS.keys(), 'second'])}`, span);
  }
  return { sql: sql`extract(${known} from ${clock})::bigint`, type: 'int' };
});

/** Declares a function that makes a time of the numbers that its clock shows. The last argument can name the zone. */
const clockTime = (least: number): FunctionSpec =>
  custom(least, 7, (call) => {
    const { place, args, span } = call;
    const parts = join(args.slice(0, 6).map((one) => coerced(place, one, 'float', span)));
    return back(place, sql`hq.make_timestamp(${parts})`, zoneAt(call, 6) ?? 'datetime');
  });

/** Prints a week with its year, which can be the one before or after that of the time. */
const yearWeek = custom(1, 3, (call) => {
  const { place, args, span } = call;
  const mode = args[1] ? coerced(place, args[1], 'int', span) : sql`0::bigint`;
  const clock = wall(place, args[0]!, span, resultAt(call, 2));
  return { sql: sql`hq.year_week(${clock}, ${mode})`, type: 'int' };
});

const format = custom(2, 3, (call) => {
  const { place, args, span } = call;
  const picture = place.printer.parameters.add(
    'text',
    outputFormat(literalText(args[1], 'The format', span), span),
  );
  return {
    sql: sql`to_char(${wall(place, args[0]!, span, resultAt(call, 2))}, ${picture})`,
    type: 'string',
  };
});

/** Declares a function that measures the time since 1970. A text without an offset is read in the zone, if there is one. */
const since1970 = (make: (seconds: Sql) => Sql): FunctionSpec =>
  custom(1, 2, (call) => {
    const time = coerced(call.place, call.args[0]!, resultAt(call, 1), call.span);
    return { sql: sql`floor(${make(sql`extract(epoch from ${time})`)})::bigint`, type: 'int' };
  });

/** Declares a function that makes a time of the seconds since 1970. */
const from1970 = (make: (number: Sql) => Sql): FunctionSpec =>
  custom(1, 2, (call) => ({
    sql: make(coerced(call.place, call.args[0]!, 'float', call.span)),
    type: zoneAt(call, 1) ?? 'datetime',
  }));

/** Declares the time of the statement. The last argument names a zone. */
const current = (time: Sql, zone: number): FunctionSpec =>
  custom(0, zone + 1, (call) => ({ sql: time, type: zoneAt(call, zone) ?? 'datetime', certain: true }));

const today = (days: number) =>
  custom(0, 1, (call) => ({
    sql: sql`((now() at time zone ${zoneOf(call.place.printer, zoneAt(call, 0) ?? 'datetime')})::date - ${digits(days)})`,
    type: 'date',
    certain: true,
  }));

/** Returns the same instant as a time in another zone. */
function inZone({ place, span }: FunctionCall, value: Value, zone: DateTime): Value {
  if (!isDateTime(value.type)) throw fault(`A ${typeName(value.type)} has no time zone`, span);
  return coerce(place, value, zone, span);
}

const toZone = custom(2, 2, (call) => inZone(call, call.args[0]!, zoneAt(call, 1)!));

/** Implements timezoneOf. */
const zoneName = custom(1, 1, ({ place, args, span }) => {
  const [value] = args as [Value];
  if (!isDateTime(value.type)) throw fault(`A ${typeName(value.type)} has no time zone`, span);
  return { sql: zoneNameOf(place.printer, value.type), type: 'string', certain: true };
});

/** Implements timezoneOffset: the seconds by which the clock of a time is ahead of UTC. */
const zoneOffset = custom(1, 1, ({ place, args, span }) => {
  const [value] = args as [Value];
  const clocks = [
    wall(place, value, span),
    sql`(${coerced(place, value, 'datetime', span)} at time zone 'UTC')`,
  ];
  return { sql: sql`extract(epoch from ${clocks[0]!} - ${clocks[1]!})::bigint`, type: 'int' };
});

const yyyymm = part((clock) => sql`to_char(${clock}, 'YYYYMM')`);
const numbered = (picture: Sql) => part((clock) => sql`to_char(${clock}, ${picture})`);
export const DATES: FunctionTable = {
  ...INTERVALS,
  ...TIME_WINDOWS,
  now: current(sql`date_trunc('second', now())`, 0),
  now64: current(sql`now()`, 1),
  current_timestamp: current(sql`now()`, 0),
  today: today(0),
  current_date: today(0),
  yesterday: today(1),
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
  toWeek: custom(1, 3, (call) => {
    const { place, args, span } = call;
    const mode = args[1] ? coerced(place, args[1], 'int', span) : sql`0::bigint`;
    const clock = wall(place, args[0]!, span, resultAt(call, 2));
    // `hq.week` itself does not accept NULL.
    const known = sql`num_nulls(${clock}, ${mode}) = 0`;
    return { sql: sql`(case when ${known} then hq.week(${clock}, ${mode}) end)`, type: 'int' };
  }),
  toYearWeek: yearWeek,
  toYYYYMM: yyyymm,
  toYYYYMMDD: numbered(sql`'YYYYMMDD'`),
  toYYYYMMDDhhmmss: numbered(sql`'YYYYMMDDHH24MISS'`),
  toStartOfYear: startDay(sql`'year'`),
  toStartOfQuarter: startDay(sql`'quarter'`),
  toStartOfMonth: startDay(sql`'month'`),
  toStartOfISOYear: day((clock) => sql`hq.start_of_iso_year(${clock})`),
  toMonday: startDay(sql`'week'`),
  toStartOfWeek: dayOfWeek(sql`0`),
  toLastDayOfWeek: dayOfWeek(sql`6`),
  toStartOfDay: startOf(sql`'day'`),
  toStartOfHour: startOf(sql`'hour'`),
  toStartOfMinute: startOf(sql`'minute'`),
  toStartOfSecond: startOf(sql`'second'`),
  toStartOfFiveMinutes: every(sql`interval '5 minutes'`),
  toStartOfFiveMinute: every(sql`interval '5 minutes'`),
  toStartOfTenMinutes: every(sql`interval '10 minutes'`),
  toStartOfFifteenMinutes: every(sql`interval '15 minutes'`),
  timeSlot: every(sql`interval '30 minutes'`),
  toStartOfInterval: startOfInterval,
  date_bin: bin,
  date_part: datePart,
  toLastDayOfMonth: day((clock) => sql`(date_trunc('month', ${clock}) + interval '1 month - 1 day')::date`),
  dateTrunc,
  date_trunc: dateTrunc,
  formatDateTime: format,
  to_char: custom(2, 2, (call) => {
    const { place, args, span } = call;
    const picture = args[1]!;
    // Formats of ClickHouse are taken, too: PostHog has no others.
    if (typeof picture.literal === 'string' && picture.literal.includes('%')) return format.print!(call);
    return {
      sql: sql`to_char(${wall(place, args[0]!, span)}, ${shortFormat(coerced(place, picture, 'string', span))})`,
      type: 'string',
    };
  }),
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
  toUnixTimestamp: since1970((time) => time),
  toUnixTimestamp64Milli: since1970((time) => sql`${time} * 1000`),
  fromUnixTimestamp: from1970((number) => sql`hq.to_timestamp(floor(${number}))`),
  fromUnixTimestamp64Milli: from1970((number) => sql`hq.to_timestamp(${number} / 1000)`),
  to_timestamp: from1970((number) => sql`hq.to_timestamp(${number})`),
  toTimeZone: toZone,
  toTimezone: toZone,
  timezone: custom(0, 2, (call) => {
    const { place, args, span } = call;
    if (args.length === 0) {
      return { sql: zoneNameOf(place.printer, 'datetime'), type: 'string', certain: true };
    }
    if (args.length !== 2) throw fault('timezone takes a zone and a time', span);
    return inZone(call, args[1]!, zoneAt(call, 0)!);
  }),
  timezoneOf: zoneName,
  timeZoneOf: zoneName,
  timezoneOffset: zoneOffset,
  timeZoneOffset: zoneOffset,
  make_date: of('i i i', 'date', (year, month, day) => sql`hq.make_date(${year}, ${month}, ${day})`),
  makeDate: of('i i i', 'date', (year, month, day) => sql`hq.make_date(${year}, ${month}, ${day})`),
  make_timestamp: clockTime(6),
  make_timestamptz: clockTime(6),
  make_interval: of(
    'f f f f f f',
    'interval',
    (year, month, day, hour, minute, second) =>
      sql`(hq.months(12 * ${year}) + hq.months(${month}) + hq.days(${day}) + hq.seconds(3600 * ${hour}) + hq.seconds(60 * ${minute}) + hq.seconds(${second}))`,
  ),
};
