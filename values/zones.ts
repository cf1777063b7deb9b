// Time zones from the platform's zone data: names, offsets and wall clocks.
import { LRUCache } from 'lru-cache';
import { ZONE_ALIASES } from './zone-aliases.ts';

/** The version of the platform's zone data, such as `2026c`. A platform that does not say it counts as the oldest. */
export const ZONE_DATA_VERSION: string = process.versions.tz ?? '0';

export interface Zone {
  /** Returns the offset from UTC at an instant in milliseconds, positive to the east. */
  offsetAt(instant: number): number;
  /**
   * Lists when the clocks change after `from` and before `to`, in order. Both are after 1970. The last answer is kept,
   * so ask for few different times.
   */
  changesWithin(from: number, to: number): readonly ZoneChange[];
}

/** A change of the clocks. */
export interface ZoneChange {
  /** The first instant with the new offset. */
  at: number;
  /** The offsets from UTC before and after. */
  before: number;
  after: number;
}

const HOUR = 3_600_000;
const UTC: Zone = { offsetAt: () => 0, changesWithin: () => [] };
const zones = new LRUCache<string, Zone>({ max: 600 });

/** Returns the zone with a name, in any spelling that the platform accepts. Throws a RangeError for other names. */
export function zoneOf(name: string): Zone {
  if (name === 'UTC') return UTC;
  let zone = zones.get(name);
  if (!zone) {
    zone = createZone(name);
    zones.set(name, zone);
  }
  return zone;
}

/**
 * Returns whether the platform accepts the name as a time zone. It also accepts `europe/berlin`, `PST` and `+02:00`.
 */
export function isKnownZone(name: string): boolean {
  try {
    zoneOf(name);
    return true;
  } catch {
    return false;
  }
}

/** Returns whether this is the name of a time zone, in any spelling, and not an offset such as `+02:00`. */
export const isNamedZone = (name: string): boolean => /^[A-Za-z]/.test(name) && isKnownZone(name);

/**
 * Returns whether this is the exact IANA name of a zone. Temporal only accepts these names for schedules. It refuses
 * `PST` and `europe/berlin`, which the platform accepts.
 */
export function isIanaZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name) || name.startsWith('SystemV/')) return false;
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions();
    return timeZone === name || ZONE_ALIASES.has(name);
  } catch {
    return false;
  }
}

/** Names that some databases read as an offset without summer time, although IANA has zones of these names. */
const READ_AS_OFFSETS: ReadonlyMap<string, string> = new Map([
  ['CET', 'Europe/Brussels'],
  ['MET', 'Europe/Brussels'],
  ['EET', 'Europe/Athens'],
  ['WET', 'Europe/Lisbon'],
]);

/**
 * Returns the name by which Postgres reads the clock of a zone as the platform does. It takes names such as `CET` and `PST` for
 * offsets, and does not know all spellings. An unknown name stays as it is.
 */
export function databaseZone(name: string): string {
  if (isIanaZone(name)) return READ_AS_OFFSETS.get(name) ?? name;
  if (!isNamedZone(name)) return name;
  const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions();
  return READ_AS_OFFSETS.get(timeZone) ?? timeZone;
}

/**
 * The length of a cached period. Since 1970, no zone changes its offset twice within 167 hours (a test checks this). So
 * if both ends of a period have the same offset, the whole period has it. Asking the platform takes twenty
 * microseconds; reading the cache takes almost no time.
 */
const STRETCH = 96 * HOUR;
const NEVER_TWICE_WITHIN = 167 * HOUR;
const FIRST_STRETCH = 0;
const LAST_STRETCH = Math.floor(Date.UTC(2200, 0, 1) / STRETCH);
const MAX_STRETCHES = 2_000;

function createZone(name: string): Zone {
  const formatter = new Intl.DateTimeFormat('en-US', {
    timeZone: name,
    hourCycle: 'h23',
    era: 'short',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  const read = (instant: number): number => {
    const parts: Record<string, string> = {};
    for (const { type, value } of formatter.formatToParts(instant)) parts[type] = value;
    const year = parts.era?.startsWith('B') ? 1 - Number(parts.year) : Number(parts.year);
    const [month, day, hour, minute, second] = [
      parts.month,
      parts.day,
      parts.hour,
      parts.minute,
      parts.second,
    ].map(Number) as [number, number, number, number, number];
    const wall = asUtc({ year, month, day, hour, minute, second, millisecond: 0 });
    return wall - Math.floor(instant / 1000) * 1000;
  };
  /** The offset of each period. Null if the offset changes within it. */
  const stretches = new Map<number, number | null>();
  /** Finds the only change of the offset between two instants, to the second. */
  const changeBetween = (from: number, to: number, before: number, after: number): ZoneChange => {
    let [early, late] = [from, to];
    while (late - early > 1000) {
      const middle = early + Math.floor((late - early) / 2000) * 1000;
      if (read(middle) === before) early = middle;
      else late = middle;
    }
    return { at: late, before, after };
  };
  let last: { from: number; to: number; changes: ZoneChange[] } | undefined;
  return {
    changesWithin(from, to) {
      if (last?.from === from && last.to === to) return last.changes;
      const changes: ZoneChange[] = [];
      let [at, offset] = [from, read(from)];
      while (at < to) {
        const next = Math.min(at + NEVER_TWICE_WITHIN, to);
        const then = read(next);
        if (then !== offset) changes.push(changeBetween(at, next, offset, then));
        [at, offset] = [next, then];
      }
      last = { from, to, changes };
      return changes;
    },
    offsetAt(instant) {
      const stretch = Math.floor(instant / STRETCH);
      if (!(stretch >= FIRST_STRETCH && stretch <= LAST_STRETCH)) return read(instant);
      let offset = stretches.get(stretch);
      if (offset === undefined) {
        const first = read(stretch * STRETCH);
        offset = first === read((stretch + 1) * STRETCH - 1000) ? first : null;
        if (stretches.size >= MAX_STRETCHES) stretches.clear();
        stretches.set(stretch, offset);
      }
      return offset ?? read(instant);
    },
  };
}

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

/** Returns what the clocks of a zone show at an instant (milliseconds since 1970). */
export function wallClock(instant: number, zone: Zone): WallClock {
  const date = new Date(instant + zone.offsetAt(instant));
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

/** Converts a wall clock to a wall time: the milliseconds since 1970 as if the clock were in UTC. */
export function asUtc(clock: WallClock): number {
  const date = new Date(0);
  date.setUTCFullYear(clock.year, clock.month - 1, clock.day);
  date.setUTCHours(clock.hour, clock.minute, clock.second, clock.millisecond);
  return date.getTime();
}

/** The largest offset of any zone. */
const FURTHEST = 16 * HOUR;

/**
 * Returns the instant at which the clocks of a zone show a wall time. If the clocks skip the time, the offset before
 * the gap applies. If they show it twice, it is the second instant. Postgres' `at time zone` does the same.
 */
export function instantOfWall(wall: number, zone: Zone): number {
  const before = zone.offsetAt(wall - FURTHEST);
  const after = zone.offsetAt(wall + FURTHEST);
  const late = wall - after;
  return before === after || zone.offsetAt(late) === after ? late : wall - before;
}

/** Returns the same instant as `instantOfWall`, except for a skipped time: then it is the instant of the jump. */
export function instantOrJump(wall: number, zone: Zone): number {
  const instant = instantOfWall(wall, zone);
  if (instant + zone.offsetAt(instant) === wall) return instant;
  // The jump is before this instant, at a whole second.
  let before = Math.floor((wall - FURTHEST) / 1000) * 1000;
  let after = Math.floor(instant / 1000) * 1000;
  const early = zone.offsetAt(before);
  while (after - before > 1000) {
    const middle = before + Math.floor((after - before) / 2000) * 1000;
    if (zone.offsetAt(middle) === early) before = middle;
    else after = middle;
  }
  return after;
}
