/** @import { Local, Value } from './types.ts' */
import { localOf, midnight, momentOf, offsetOf, parseDate, utcOf } from './calendar.js';
import { fail, isDate, isDateTime, newDate, newDateTime } from './values.js';

// Arithmetic and formatting of Hog dates in browsers.

/** @type {(value: Value) => number} */
export function amountOf(value) {
  const amount = typeof value === 'boolean' || value === '' ? Number.NaN : Number(value);
  return Number.isFinite(amount) ? amount : fail(`Invalid unit value ${value}`);
}

/**
 * Returns the seconds since 1970 of a date, or null for any other value.
 * @type {(value: Value) => number | null}
 */
export function secondsOf(value) {
  if (isDateTime(value)) return value.dt;
  if (!isDate(value)) return null;
  for (const part of [value.year, value.month, value.day]) amountOf(part);
  return utcOf(midnight(value.year, value.month, value.day)) / 1000;
}

/** @type {(value: Value) => Local} */
export function localOfValue(value) {
  if (isDateTime(value)) return localOf(value.dt * 1000, value.zone);
  if (isDate(value)) return midnight(value.year, value.month, value.day);
  return parseDate(value, 'UTC')?.local ?? localOf(Number.NaN, 'UTC');
}

/** @type {(value: number, length?: number) => string} */
export function pad(value, length = 2) {
  return String(value).padStart(length, '0');
}

/**
 * Formats an offset as `+02:00`, or with another separator.
 * @type {(minutes: number, between: string) => string}
 */
export function offsetText(minutes, between) {
  const size = Math.abs(minutes);
  return `${minutes < 0 ? '-' : '+'}${pad(Math.floor(size / 60))}${between}${pad(size % 60)}`;
}

/** @type {(value: Value) => Value} */
export function isoText(value) {
  const { dt, zone } = value;
  const offset = offsetOf(zone, dt * 1000);
  if (Number.isNaN(dt + offset)) return null;
  const { year, month, day, hour, minute, second, ms } = localOf(dt * 1000, zone);
  const end = offset === 0 && /^(?:utc|gmt)$/i.test(zone) ? 'Z' : offsetText(offset, ':');
  return `${pad(year, 4)}-${pad(month)}-${pad(day)}T${pad(hour)}:${pad(minute)}:${pad(second)}.${pad(ms, 3)}${end}`;
}

/**
 * Returns the day of the week. Monday is 1.
 * @type {(local: Local) => number}
 */
export function weekdayOf({ year, month, day }) {
  return new Date(utcOf(midnight(year, month, day))).getUTCDay() || 7;
}

/** @type {(local: Local) => number} */
export function isoWeekOf(local) {
  const { year, month, day } = local;
  const thursday = new Date(utcOf(midnight(year, month, day + 4 - weekdayOf(local))));
  const start = utcOf(midnight(thursday.getUTCFullYear(), 1, 1));
  return Math.floor((thursday.getTime() - start) / 604_800_000) + 1;
}

/** @type {(value: Value, format: Value, zone: Value) => string} */
export function formatDate(value, format, zone) {
  if (!isDateTime(value)) fail('Expected a DateTime');
  if (!format) fail('formatDateTime requires at least 2 arguments');
  const inZone = zone || value.zone;
  const local = localOf(value.dt * 1000, inZone);
  const { year, month, day, hour, minute, second, ms } = local;
  if (Number.isNaN(year)) return 'Invalid DateTime';
  const weekday = weekdayOf(local);
  /** @type {(list: string, at: number) => Value} */
  const names = (list, at) => list.split(' ')[at - 1];
  const days = names('Monday Tuesday Wednesday Thursday Friday Saturday Sunday', weekday);
  const months = names(
    'January February March April May June July August September October November December',
    month,
  );
  const [twelve, half] = [pad(hour % 12 || 12), hour < 12 ? 'AM' : 'PM'];
  const short = pad(year % 100);
  const ordinal =
    Math.round((utcOf(midnight(year, month, day)) - utcOf(midnight(year, 1, 1))) / 86_400_000) + 1;
  /** @type {Record<string, string>} */
  const tokens = {
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
  return String(format).replace(/%([\s\S]?)/g, (_all, token) => tokens[token] ?? '');
}

/**
 * Adds an interval to an instant. Days and months follow the calendar; smaller units have a fixed length.
 * @type {(moment: number, zone: string, amount: number, unit: string) => number}
 */
export function moved(moment, zone, amount, unit) {
  const day = 86_400_000;
  /** @type {Record<string, number>} */
  const sizes = { hour: 3_600_000, minute: 60_000, second: 1_000 };
  if (unit === 'year') return moved(moment, zone, amount * 12, 'month');
  if (unit === 'week') return moved(moment, zone, amount * 7, 'day');
  const whole = Math.trunc(amount);
  const local = localOf(moment, zone);
  if (unit === 'day') {
    return momentOf({ ...local, day: local.day + whole }, zone) + (amount - whole) * day;
  }
  if (unit === 'month') {
    const last = new Date(utcOf(midnight(local.year, local.month + whole + 1, 0))).getUTCDate();
    const target = { ...local, month: local.month + whole, day: Math.min(local.day, last) };
    return momentOf(target, zone) + (amount - whole) * 30 * day;
  }
  const size = sizes[unit];
  return size === undefined ? fail(`Unsupported interval unit: ${unit}`) : moment + Math.trunc(amount * size);
}

/** @type {(base: Value, amount: Value, unit: string) => Value} */
export function addInterval(base, amount, unit) {
  if (!isDateTime(base) && !isDate(base)) fail('Expected a DateTime');
  const count = amountOf(amount);
  if (isDateTime(base)) return newDateTime(moved(base.dt * 1000, base.zone, count, unit) / 1000, base.zone);
  const start = utcOf(midnight(base.year, base.month, base.day));
  const { year, month, day } = localOf(moved(start, 'UTC', count, unit), 'UTC');
  return newDate(year, month, day);
}

/**
 * Rounds a moment down to the start of a unit.
 * @type {(value: Value, unit: string) => Value}
 */
export function truncated(value, unit) {
  if (!isDateTime(value)) fail('Expected a DateTime for dateTrunc');
  const units = ['year', 'month', 'day', 'hour', 'minute'];
  const kept = units.indexOf(unit);
  if (kept === -1) fail(`Unsupported unit for dateTrunc: ${unit}`);
  const local = localOf(value.dt * 1000, value.zone);
  const start = {
    year: local.year,
    month: kept >= 1 ? local.month : 1,
    day: kept >= 2 ? local.day : 1,
    hour: kept >= 3 ? local.hour : 0,
    minute: kept >= 4 ? local.minute : 0,
    second: 0,
    ms: 0,
  };
  return newDateTime(momentOf(start, value.zone) / 1000, value.zone);
}

/** @type {(value: Value) => Value} */
export function withTime(value) {
  if (!isDateTime(value) && !isDate(value)) fail('Expected a DateTime');
  return isDateTime(value) ? value : newDateTime(Number(secondsOf(value)), 'UTC');
}

/**
 * Counts the whole units between two dates. For weeks, hours and smaller units, a month has 30 days and a year has 365,
 * as in the VM.
 * @type {(unit: string, from: Value, to: Value) => number}
 */
export function difference(unit, from, to) {
  /** @type {(value: Value) => number} */
  const moment = (value) => (secondsOf(value) ?? parseDate(value, 'UTC')?.seconds ?? Number.NaN) * 1000;
  const [start, end] = [moment(from), moment(to)];
  const [a, b] = [localOfValue(from), localOfValue(to)];
  if (unit === 'day') return Math.floor((end - start) / 86_400_000);
  if (unit === 'year') return b.year - a.year;
  if (unit === 'month') return (b.year - a.year) * 12 + (b.month - a.month);
  /** @type {Record<string, number>} */
  const sizes = { hour: 3_600_000, minute: 60_000, second: 1_000, week: 604_800_000 };
  const size = sizes[unit];
  if (size === undefined) return fail(`Unsupported unit for dateDiff: ${unit}`);
  const zone = isDateTime(from) ? from.zone : 'UTC';
  if (end < start) return Math.floor(-spanOf(end, start, isDateTime(to) ? to.zone : 'UTC') / size);
  return Math.floor(spanOf(start, end, zone) / size);
}

/** @type {(start: number, end: number, zone: string) => number} */
export function spanOf(start, end, zone) {
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
