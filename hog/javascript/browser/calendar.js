/** @import { Local, Value } from './types.ts' */

// The calendar and the clocks of time zones in browsers, based on Intl.

/**
 * Returns the offset of a zone from UTC in minutes, positive to the east. Returns NaN if the zone does not exist.
 * @type {(zone: string, at: number) => number}
 */
export function offsetOf(zone, at) {
  if (typeof zone !== 'string') return Number.NaN;
  if (/^(?:utc|gmt)?$/i.test(zone)) return 0;
  const fixed = /^(?:utc|gmt)([+-]\d{1,2})(?::(\d{2}))?$/i.exec(zone);
  if (fixed) return Number(fixed[1]) * 60 + (Number(fixed[1]) < 0 ? -1 : 1) * Number(fixed[2] ?? 0);
  if (!Number.isFinite(at)) return Number.NaN;
  try {
    const numeric = '2-digit';
    const format = new Intl.DateTimeFormat('en-US', {
      timeZone: /^(?:local|system|default)$/i.test(zone) ? undefined : zone,
      hourCycle: 'h23',
      era: 'short',
      year: 'numeric',
      month: numeric,
      day: numeric,
      hour: numeric,
      minute: numeric,
      second: numeric,
    });
    /** @type {Record<string, string>} */
    const parts = {};
    for (const { type, value } of format.formatToParts(at)) parts[type] = value;
    const year = parts.era === 'BC' ? 1 - Number(parts.year) : Number(parts.year);
    const local = utcOf({
      year,
      month: Number(parts.month),
      day: Number(parts.day),
      hour: Number(parts.hour),
      minute: Number(parts.minute),
      second: Number(parts.second),
      ms: 0,
    });
    return (local - Math.floor(at / 1000) * 1000) / 60_000;
  } catch {
    return Number.NaN;
  }
}

/** @type {(local: Local) => number} */
export function utcOf({ year, month, day, hour, minute, second, ms }) {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second, ms);
  return date.getTime();
}

/**
 * Returns the instant at which a clock in the zone shows the local time. If the clock shows it twice, it is the second
 * instant. If the clock skips it, the offset before the change applies.
 * @type {(local: Local, zone: string) => number}
 */
export function momentOf(local, zone) {
  const wanted = utcOf(local);
  const before = offsetOf(zone, wanted - 86_400_000);
  const after = offsetOf(zone, wanted + 86_400_000);
  const late = wanted - after * 60_000;
  return before === after || offsetOf(zone, late) === after ? late : wanted - before * 60_000;
}

/**
 * Returns what a clock in the zone shows at an instant.
 * @type {(moment: number, zone: string) => Local}
 */
export function localOf(moment, zone) {
  const date = new Date(moment + offsetOf(zone, moment) * 60_000);
  return {
    year: date.getUTCFullYear(),
    month: date.getUTCMonth() + 1,
    day: date.getUTCDate(),
    hour: date.getUTCHours(),
    minute: date.getUTCMinutes(),
    second: date.getUTCSeconds(),
    ms: date.getUTCMilliseconds(),
  };
}

/** @type {(year: number, month: number, day: number) => Local} */
export function midnight(year, month, day) {
  return { year, month, day, hour: 0, minute: 0, second: 0, ms: 0 };
}

/**
 * Parses a date text. This is the same format as in the VM and in SQL.
 * @type {(text: Value, zone: string) => { seconds: number; local: Local } | null}
 */
export function parseDate(text, zone) {
  if (typeof text !== 'string') return null;
  const found =
    /^([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[Tt ]([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:[.,]([0-9]{1,9}))?)?(?:([Zz])|([+-])([01][0-9]|2[0-3])(?::?([0-5][0-9]))?)?)?$/.exec(
      text.trim(),
    );
  if (!found || found[1] === '0000') return null;
  /** @type {(at: number) => number} */
  const number = (at) => Number(found[at] ?? 0);
  const local = {
    ...midnight(number(1), number(2), number(3)),
    hour: number(4),
    minute: number(5),
    second: number(6),
    ms: Number((found[7] ?? '').slice(0, 3).padEnd(3, '0')),
  };
  const utc = utcOf(local);
  const date = new Date(utc);
  if (date.getUTCMonth() + 1 !== local.month || date.getUTCDate() !== local.day) return null;
  if (found[8]) return { seconds: utc / 1000, local: localOf(utc, zone) };
  if (!found[9]) return { seconds: momentOf(local, zone) / 1000, local };
  const offset = (number(10) * 60 + number(11)) * (found[9] === '-' ? -1 : 1);
  const moment = utc - offset * 60_000;
  return { seconds: moment / 1000, local: localOf(moment, zone) };
}
