// Wall-clock arithmetic in a named time zone, from the platform's zone data.

export interface WallClock {
  year: number;
  /** 1…12 */
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
  millisecond: number;
}

const formatters = new Map<string, Intl.DateTimeFormat>();
const MAX_FORMATTERS = 500;

function formatterOf(zone: string): Intl.DateTimeFormat {
  const known = formatters.get(zone);
  if (known) return known;
  const formatter = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    era: 'short',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  if (formatters.size >= MAX_FORMATTERS) formatters.clear();
  formatters.set(zone, formatter);
  return formatter;
}

/** Whether the platform knows a time zone of that name. */
export function isZone(zone: string): boolean {
  try {
    formatterOf(zone);
    return true;
  } catch {
    return false;
  }
}

/** What the clocks in `zone` show at an instant (milliseconds since 1970). */
export function wallClock(instant: number, zone: string): WallClock {
  if (zone === 'UTC') return fromUtc(new Date(instant));
  const parts: Record<string, string> = {};
  for (const part of formatterOf(zone).formatToParts(instant)) parts[part.type] = part.value;
  const year = Number(parts.year);
  return {
    year: parts.era?.startsWith('B') ? 1 - year : year,
    month: Number(parts.month),
    day: Number(parts.day),
    hour: Number(parts.hour),
    minute: Number(parts.minute),
    second: Number(parts.second),
    millisecond: ((instant % 1000) + 1000) % 1000,
  };
}

function fromUtc(date: Date): WallClock {
  return {
    year: date.getUTCFullYear(),
    month: date.getUTCMonth() + 1,
    day: date.getUTCDate(),
    hour: date.getUTCHours(),
    minute: date.getUTCMinutes(),
    second: date.getUTCSeconds(),
    millisecond: date.getUTCMilliseconds(),
  };
}

/** Milliseconds of a wall clock read as if it stood in UTC. */
export function asUtc(clock: WallClock): number {
  const date = new Date(0);
  date.setUTCFullYear(clock.year, clock.month - 1, clock.day);
  date.setUTCHours(clock.hour, clock.minute, clock.second, clock.millisecond);
  return date.getTime();
}

/**
 * The instant at which the clocks in `zone` show `clock`. A time that the clocks skip counts on from before
 * the gap, a time that they show twice is the second of the two, both as with Postgres' `at time zone`.
 */
export function instantOf(clock: WallClock, zone: string): number {
  const wall = asUtc(clock);
  if (zone === 'UTC') return wall;
  const before = offsetAt(wall - 86_400_000, zone);
  const after = offsetAt(wall + 86_400_000, zone);
  const late = wall - after;
  return before === after || offsetAt(late, zone) === after ? late : wall - before;
}

const offsetAt = (instant: number, zone: string): number => asUtc(wallClock(instant, zone)) - instant;
