import { LRUCache } from 'lru-cache';
import type { Clocks } from '../values/tzif.ts';
import { type Cadence, DAY, fixedLength, HOUR } from './cadence.ts';
import { intervalAt } from './intervals.ts';
import { cadenceZone } from './zone.ts';

/** The days of a week as Temporal names them. */
export const WEEKDAYS = [
  'SUNDAY',
  'MONDAY',
  'TUESDAY',
  'WEDNESDAY',
  'THURSDAY',
  'FRIDAY',
  'SATURDAY',
] as const;

/** A local time at which a schedule fires, in the form that Temporal's client takes. */
export interface CalendarSpec {
  dayOfWeek?: (typeof WEEKDAYS)[number];
  hour: number;
  minute: number;
  second: number;
  comment: string;
}

/** When a schedule fires: at the end of every interval. */
export interface ScheduleTimes {
  calendars: CalendarSpec[];
  /** Milliseconds; fires at whole multiples since 1970. */
  intervals: { every: number; offset: number }[];
  timezone: string;
  /** The clocks of the calendars, which decide, whatever the server knows about the zone. Without them, they are in UTC. */
  clocks?: Clocks;
}

/** For how many years the clocks of a schedule are known. */
const YEARS = 10;

/**
 * Returns the times at which the intervals of a cadence end, for a schedule in Temporal. Days and weeks need calendars,
 * because interval specs have no time zone.
 *
 * The server's zone data may be of another version than the platform's, which cuts the intervals. So the schedule takes its
 * clocks along. They are those of the zone from the beginning of `from`'s year for ten years, and change at most once a
 * year. They differ from those of the zone in one thing: they change in the middle of an interval. So they show the local
 * hour exactly once for each interval, also where the clocks of the zone skip it or show it twice.
 */
export function scheduleTimes(cadence: Cadence, from: number): ScheduleTimes {
  const every = fixedLength(cadence);
  if (every !== undefined) {
    return { calendars: [], intervals: [{ every, offset: 0 }], timezone: 'UTC' };
  }
  const { interval, offsetDay, offsetHour, timezone } = cadence;
  const weekly = interval === 'week' ? { dayOfWeek: WEEKDAYS[offsetDay] as (typeof WEEKDAYS)[number] } : {};
  return {
    calendars: [{ ...weekly, hour: offsetHour, minute: 0, second: 0, comment: `every ${interval}` }],
    intervals: [],
    timezone,
    ...(timezone === 'UTC' ? {} : { clocks: clocksOf(cadence, new Date(from).getUTCFullYear()) }),
  };
}

const remembered = new LRUCache<string, Clocks>({ max: 5_000 });

function clocksOf({ interval, timezone, offsetHour, offsetDay }: Cadence, year: number): Clocks {
  const key = [interval, timezone, offsetHour, offsetDay, year].join();
  let clocks = remembered.get(key);
  if (!clocks) {
    // Without the seam, of which a schedule knows nothing.
    clocks = computeClocks({ interval, timezone, offsetHour, offsetDay }, year);
    remembered.set(key, clocks);
  }
  return clocks;
}

function computeClocks(cadence: Cadence, year: number): Clocks {
  const [first, end] = [Date.UTC(year, 0, 1), Date.UTC(year + YEARS, 0, 1)];
  const zone = cadenceZone(cadence);
  const hour = cadence.offsetHour * HOUR;
  /** What the clocks have to be ahead of UTC when an interval ends: they show the hour, on the date on which the zone is. */
  const offsetAt = (edge: number): number => {
    const offset = zone.offsetAt(edge);
    const date = Math.floor((edge + offset - hour) / DAY);
    return date * DAY + hour - edge;
  };
  // Between two changes, all edges have the same offset.
  const edges = new Set([intervalAt(cadence, first).start]);
  // Each zone is asked for the same times, whatever the hour, because finding the changes of its clocks takes long.
  for (const { at } of zone.changesWithin(first, end)) {
    const before = intervalAt(cadence, at - 1);
    for (const one of [before.start, before.end, intervalAt(cadence, before.end).end]) edges.add(one);
  }
  const [start, ...others] = [...edges].sort((one, other) => one - other) as [number, ...number[]];
  const clocks = { first: offsetAt(start), changes: [] as { at: number; offset: number }[] };
  let [last, offset] = [start, clocks.first];
  for (const edge of others) {
    const next = offsetAt(edge);
    // Half a day, or half a week, away from both. No zone has shown a whole date twice since 1970.
    if (next !== offset) clocks.changes.push({ at: last + (edge - last) / 2, offset: next });
    [last, offset] = [edge, next];
  }
  return clocks;
}
