// Parses dates, resolves relative dates such as `-7d`, and formats instants.
import { asUtc, instantOfWall, type WallClock, wallClock, zoneOf } from './zones.ts';

/** The current time and time zone with which dates are read. The clock and zone of the machine are never used. */
export interface Moment {
  /** Milliseconds since 1970. */
  now: number;
  /** The zone of dates without an offset. */
  timezone: string;
}

const DATE =
  /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(Z|z|[+-]\d\d(?::?\d\d)?)?)?$/;

/**
 * Parses `YYYY-MM-DD[T| HH:MM[:SS[.fff]][Z|±HH[:]MM]]` to milliseconds since 1970. Returns null for any other text.
 * Only three digits of a fraction are used. Hog's `toDateTime` and HogQL use the same grammar.
 */
export function parseDate(text: string, timezone: string): number | null {
  const match = DATE.exec(text.trim());
  if (!match) return null;
  const [, year, month, day, hour, minute, second, fraction, offset] = match;
  const clock: WallClock = {
    year: Number(year),
    month: Number(month),
    day: Number(day),
    hour: Number(hour ?? 0),
    minute: Number(minute ?? 0),
    second: Number(second ?? 0),
    millisecond: Number((fraction ?? '').slice(0, 3).padEnd(3, '0')),
  };
  if (clock.year === 0 || clock.month < 1 || clock.month > 12) return null;
  if (clock.day < 1 || clock.day > daysIn(clock.year, clock.month)) return null;
  if (clock.hour > 23 || clock.minute > 59 || clock.second > 59) return null;
  if (offset === undefined) return instantOfWall(asUtc(clock), zoneOf(timezone));
  if (offset === 'Z' || offset === 'z') return asUtc(clock);
  const digits = offset.slice(1).replace(':', '').padEnd(4, '0');
  const [hours, minutes] = [Number(digits.slice(0, 2)), Number(digits.slice(2))];
  if (hours > 23 || minutes > 59) return null;
  return asUtc(clock) - (offset[0] === '-' ? -1 : 1) * (hours * 60 + minutes) * 60_000;
}

const RELATIVE = /^[-+]?(\d{1,4})([hdwmqy])$/;

/**
 * Parses a relative date such as `-7d`, `-3h`, `-2w`, `-1m` (months), `-1q` or `-1y` to an instant. Returns null for
 * any other text. A relative date is always in the past, whatever its sign. Hours, days and weeks have a fixed length.
 * Months, quarters and years follow the calendar in the moment's zone. A day that the month does not have becomes its
 * last day.
 */
export function parseRelativeDate(text: string, moment: Moment): number | null {
  const match = RELATIVE.exec(text);
  if (!match) return null;
  const count = Number(match[1]);
  const fixed = FIXED_UNITS[match[2] as string];
  if (fixed !== undefined) return moment.now - count * fixed;
  const months = count * (CALENDAR_UNITS[match[2] as string] as number);
  return monthsBefore(moment, months);
}

const HOUR = 3_600_000;
const FIXED_UNITS: Readonly<Record<string, number>> = { h: HOUR, d: 24 * HOUR, w: 7 * 24 * HOUR };
const CALENDAR_UNITS: Readonly<Record<string, number>> = { m: 1, q: 3, y: 12 };

function monthsBefore(moment: Moment, months: number): number {
  const zone = zoneOf(moment.timezone);
  const clock = wallClock(moment.now, zone);
  const index = clock.year * 12 + (clock.month - 1) - months;
  const year = Math.floor(index / 12);
  const month = index - year * 12 + 1;
  return instantOfWall(asUtc({ ...clock, year, month, day: Math.min(clock.day, daysIn(year, month)) }), zone);
}

function daysIn(year: number, month: number): number {
  const date = new Date(0);
  date.setUTCFullYear(year, month, 0);
  return date.getUTCDate();
}

/** Formats an instant in UTC, as in answers, logs and Temporal. Leaves out a fraction of zero. */
export const instantText = (instant: number | string): string =>
  new Date(instant).toISOString().replace('.000Z', 'Z');
