// Offsets of named time zones, from the platform's zone data.
import { ZONE_ALIASES } from '../values/zone-aliases.ts';

const HOUR = 3_600_000;
/** No zone is further from UTC than this. */
const FURTHEST = 16 * HOUR;
/**
 * Since 1970 no zone changed its offset twice within 167 hours (a test looks for it), so a stretch of this length whose
 * ends have the same offset has it everywhere.
 */
const STRETCH = 96 * HOUR;
/** Zone data is good for these years only; what lies outside counts with the offset of the edge. */
export const ZONE_DATA = { from: Date.UTC(1940, 0, 1), to: Date.UTC(2200, 0, 1) };
const MAX_STRETCHES = 2_000;
const MAX_ZONES = 600;

export interface Zone {
  /** What the clocks show at an instant, less the instant: milliseconds east of UTC. */
  offsetAt(instant: number): number;
  /**
   * The instant at which the clocks show `wall` (a wall clock, read as if it stood in UTC). For a time that they jump
   * over it is the instant of the jump. Of a time that they show twice it is the second: Temporal fires then in every
   * zone, and at the first in some.
   */
  instantOf(wall: number): number;
}

const UTC: Zone = { offsetAt: () => 0, instantOf: (wall) => wall };
const zones = new Map<string, Zone>();

/** Throws a RangeError for a name that the platform does not know. */
export function zoneOf(name: string): Zone {
  if (name === 'UTC') return UTC;
  let zone = zones.get(name);
  if (!zone) {
    zone = createZone(name);
    if (zones.size >= MAX_ZONES) zones.clear();
    zones.set(name, zone);
  }
  return zone;
}

/**
 * Whether it names a time zone: an IANA name as IANA writes it (an offset such as `+02:00` is none). The platform also
 * takes other spellings and abbreviations such as `PST`; Temporal does not, and a schedule would never come about.
 */
export function isZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name) || name.startsWith('SystemV/')) return false;
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions();
    return timeZone === name || ZONE_ALIASES.has(name);
  } catch {
    return false;
  }
}

function createZone(name: string): Zone {
  const formatter = new Intl.DateTimeFormat('en-US', {
    timeZone: name,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  const read = (instant: number): number => {
    const clamped = Math.min(Math.max(instant, ZONE_DATA.from), ZONE_DATA.to);
    const second = Math.floor(clamped / 1000) * 1000;
    const parts: Record<string, number> = {};
    for (const { type, value } of formatter.formatToParts(second)) parts[type] = Number(value);
    const { year, month, day, hour, minute } = parts as Record<string, number>;
    const wall = Date.UTC(year!, month! - 1, day, hour, minute, parts.second);
    return wall - second;
  };
  // Asking the platform costs twenty microseconds; most stretches have one offset.
  const stretches = new Map<number, number | null>();
  const offsetAt = (instant: number): number => {
    const stretch = Math.floor(instant / STRETCH);
    let offset = stretches.get(stretch);
    if (offset === undefined) {
      const first = read(stretch * STRETCH);
      offset = first === read((stretch + 1) * STRETCH - 1000) ? first : null;
      if (stretches.size >= MAX_STRETCHES) stretches.clear();
      stretches.set(stretch, offset);
    }
    return offset ?? read(instant);
  };
  const instantOf = (wall: number): number => {
    let before = wall - FURTHEST;
    let after = wall + FURTHEST;
    const [early, late] = [offsetAt(before), offsetAt(after)];
    if (early === late) return wall - early;
    // The clocks are changed within these hours, once, at a whole second.
    before = Math.floor(before / 1000) * 1000;
    while (after - before > 1000) {
      const middle = before + Math.floor((after - before) / 2000) * 1000;
      if (offsetAt(middle) === early) before = middle;
      else after = middle;
    }
    const change = Math.floor(after / 1000) * 1000;
    return wall - late >= change ? wall - late : Math.min(wall - early, change);
  };
  return { offsetAt, instantOf };
}
