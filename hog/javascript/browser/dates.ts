import { type Local, localOf, midnight, momentOf, offsetOf, parseDate, utcOf } from './calendar.ts';
import { fail, isDate, isDateTime, newDate, newDateTime, type Value } from './values.ts';

// Dates as values in the browser.

export function amountOf(value: Value): number {
  const amount = typeof value === 'boolean' || value === '' ? Number.NaN : Number(value);
  return Number.isFinite(amount) ? amount : fail(`Invalid unit value ${value}`);
}

/** Seconds since 1970 of a date, otherwise null. */
export function secondsOf(value: Value): number | null {
  if (isDateTime(value)) return value.dt;
  if (!isDate(value)) return null;
  for (const part of [value.year, value.month, value.day]) amountOf(part);
  return utcOf(midnight(value.year, value.month, value.day)) / 1000;
}

export function localOfValue(value: Value): Local {
  if (isDateTime(value)) return localOf(value.dt * 1000, value.zone);
  if (isDate(value)) return midnight(value.year, value.month, value.day);
  return parseDate(value, 'UTC')?.local ?? localOf(Number.NaN, 'UTC');
}

export function pad(value: number, length = 2): string {
  return String(value).padStart(length, '0');
}

/** `+02:00`, or with nothing between. */
export function offsetText(minutes: number, between: string): string {
  const size = Math.abs(minutes);
  return `${minutes < 0 ? '-' : '+'}${pad(Math.floor(size / 60))}${between}${pad(size % 60)}`;
}

export function isoText(value: Value): Value {
  const { dt, zone } = value;
  const offset = offsetOf(zone, dt * 1000);
  if (Number.isNaN(dt + offset)) return null;
  const { year, month, day, hour, minute, second, ms } = localOf(dt * 1000, zone);
  const end = offset === 0 && /^(?:utc|gmt)$/i.test(zone) ? 'Z' : offsetText(offset, ':');
  return `${pad(year, 4)}-${pad(month)}-${pad(day)}T${pad(hour)}:${pad(minute)}:${pad(second)}.${pad(ms, 3)}${end}`;
}

/** Monday is 1. */
export function weekdayOf({ year, month, day }: Local): number {
  return new Date(utcOf(midnight(year, month, day))).getUTCDay() || 7;
}

export function isoWeekOf(local: Local): number {
  const { year, month, day } = local;
  const thursday = new Date(utcOf(midnight(year, month, day + 4 - weekdayOf(local))));
  const start = utcOf(midnight(thursday.getUTCFullYear(), 1, 1));
  return Math.floor((thursday.getTime() - start) / 604_800_000) + 1;
}

export function formatDate(value: Value, format: Value, zone: Value): string {
  if (!isDateTime(value)) fail('Expected a DateTime');
  if (!format) fail('formatDateTime requires at least 2 arguments');
  const inZone = zone || value.zone;
  const local = localOf(value.dt * 1000, inZone);
  const { year, month, day, hour, minute, second, ms } = local;
  if (Number.isNaN(year)) return 'Invalid DateTime';
  const weekday = weekdayOf(local);
  const names = (list: string, at: number) => list.split(' ')[at - 1] as string;
  const days = names('Monday Tuesday Wednesday Thursday Friday Saturday Sunday', weekday);
  const months = names(
    'January February March April May June July August September October November December',
    month,
  );
  const [twelve, half] = [pad(hour % 12 || 12), hour < 12 ? 'AM' : 'PM'];
  const short = pad(year % 100);
  const ordinal =
    Math.round((utcOf(midnight(year, month, day)) - utcOf(midnight(year, 1, 1))) / 86_400_000) + 1;
  const tokens: Record<string, string> = {
    a: days.slice(0, 3),
    b: months.slice(0, 3),
    c: pad(month),
    C: short,
    d: pad(day),
    D: `${pad(month)}/${pad(day)}/${short}`,
    e: String(day),
    f: pad(ms, 3),
    F: `${pad(year, 4)}-${pad(month)}-${pad(day)}`,
    g: short,
    G: pad(year, 4),
    h: twelve,
    H: pad(hour),
    i: pad(minute),
    I: twelve,
    j: pad(ordinal, 3),
    k: pad(hour),
    l: twelve,
    m: pad(month),
    M: months,
    n: '\n',
    p: half,
    Q: String(Math.ceil(month / 3)),
    r: `${twelve}:${pad(minute)} ${half}`,
    R: `${pad(hour)}:${pad(minute)}`,
    s: pad(second),
    S: pad(second),
    t: '\t',
    T: `${pad(hour)}:${pad(minute)}:${pad(second)}`,
    u: String(weekday),
    V: pad(isoWeekOf(local)),
    w: String(weekday),
    W: days,
    y: short,
    Y: pad(year, 4),
    z: offsetText(offsetOf(inZone, value.dt * 1000), ''),
    '%': '%',
  };
  return String(format).replace(/%([\s\S]?)/g, (_all, token: string) => tokens[token] ?? '');
}

/** Days and months by the calendar, smaller units by the clock. */
export function moved(moment: number, zone: string, amount: number, unit: string): number {
  const sizes: Record<string, number> = { day: 86_400_000, hour: 3_600_000, minute: 60_000, second: 1_000 };
  if (unit === 'year') return moved(moment, zone, amount * 12, 'month');
  if (unit === 'week') return moved(moment, zone, amount * 7, 'day');
  const whole = Math.trunc(amount);
  const local = localOf(moment, zone);
  if (unit === 'day') {
    return momentOf({ ...local, day: local.day + whole }, zone) + (amount - whole) * (sizes.day as number);
  }
  if (unit === 'month') {
    const last = new Date(utcOf(midnight(local.year, local.month + whole + 1, 0))).getUTCDate();
    const target = { ...local, month: local.month + whole, day: Math.min(local.day, last) };
    return momentOf(target, zone) + (amount - whole) * 30 * (sizes.day as number);
  }
  const size = sizes[unit];
  return size === undefined ? fail(`Unsupported interval unit: ${unit}`) : moment + Math.trunc(amount * size);
}

export function addInterval(base: Value, amount: Value, unit: string): Value {
  if (!isDateTime(base) && !isDate(base)) fail('Expected a DateTime');
  const count = amountOf(amount);
  if (isDateTime(base)) return newDateTime(moved(base.dt * 1000, base.zone, count, unit) / 1000, base.zone);
  const start = utcOf(midnight(base.year, base.month, base.day));
  const { year, month, day } = localOf(moved(start, 'UTC', count, unit), 'UTC');
  return newDate(year, month, day);
}

/** The start of the unit a moment is in. */
export function truncated(value: Value, unit: string): Value {
  if (!isDateTime(value)) fail('Expected a DateTime for dateTrunc');
  const units = ['year', 'month', 'day', 'hour', 'minute'];
  const kept = units.indexOf(unit);
  if (kept === -1) fail(`Unsupported unit for dateTrunc: ${unit}`);
  const local = localOf(value.dt * 1000, value.zone);
  const parts = [local.year, local.month, local.day, local.hour, local.minute];
  const [year, month, day, hour, minute] = parts.map((part, at) => (at <= kept ? part : at < 3 ? 1 : 0)) as [
    number,
    number,
    number,
    number,
    number,
  ];
  return newDateTime(
    momentOf({ year, month, day, hour, minute, second: 0, ms: 0 }, value.zone) / 1000,
    value.zone,
  );
}

export function withTime(value: Value): Value {
  if (!isDateTime(value) && !isDate(value)) fail('Expected a DateTime');
  return isDateTime(value) ? value : newDateTime(secondsOf(value) as number, 'UTC');
}

/** Whole units between two dates; hours and less count a month as 30 days and a year as 365, as the machine does. */
export function difference(unit: string, from: Value, to: Value): number {
  const moment = (value: Value) =>
    ((secondsOf(value) ?? parseDate(value, 'UTC')?.seconds ?? Number.NaN) as number) * 1000;
  const [start, end] = [moment(from), moment(to)];
  const [a, b] = [localOfValue(from), localOfValue(to)];
  if (unit === 'day') return Math.floor((end - start) / 86_400_000);
  if (unit === 'year') return b.year - a.year;
  if (unit === 'month') return (b.year - a.year) * 12 + (b.month - a.month);
  const sizes: Record<string, number> = { hour: 3_600_000, minute: 60_000, second: 1_000, week: 604_800_000 };
  const size = sizes[unit];
  if (size === undefined) return fail(`Unsupported unit for dateDiff: ${unit}`);
  const zone = isDateTime(from) ? from.zone : 'UTC';
  if (end < start) return Math.floor(-spanOf(end, start, isDateTime(to) ? to.zone : 'UTC') / size);
  return Math.floor(spanOf(start, end, zone) / size);
}

export function spanOf(start: number, end: number, zone: string): number {
  let months = 0;
  const [a, b] = [localOf(start, zone), localOf(end, zone)];
  months = (b.year - a.year) * 12 + (b.month - a.month);
  if (moved(start, zone, months, 'month') > end) months--;
  const after = moved(start, zone, months, 'month');
  let days = Math.floor((end - after) / 86_400_000);
  if (moved(after, zone, days + 1, 'day') <= end) days++;
  if (moved(after, zone, days, 'day') > end) days--;
  const rest = end - moved(after, zone, days, 'day');
  return (Math.trunc(months / 12) * 365 + (months % 12) * 30 + days) * 86_400_000 + rest;
}
