// Time cut into intervals, without gap or overlap: every instant lies in exactly one.
import { instantOrJump, type Zone } from '../values/zones.ts';
import { type Cadence, DAY, fixedLength, HOUR } from './cadence.ts';
import type { Interval } from './interval.ts';
import { cadenceZone, ZONE_DATA } from './zone.ts';

/** 1970-01-01 was a Thursday. */
const FIRST_WEEKDAY = 4;

/** Local dates are counted in days since 1970-01-01. */
export const weekdayOf = (date: number): number => (((date + FIRST_WEEKDAY) % 7) + 7) % 7;

/** Returns whether the zone has the date at all. Zones that moved across the date line left a date out. */
function hasDate(zone: Zone, date: number): boolean {
  const midnight = instantOrJump(date * DAY, zone);
  return Math.floor((midnight + zone.offsetAt(midnight)) / DAY) === date;
}

/** Returns the instant at which the day or week of a date begins. */
export const startOfDate = (cadence: Cadence, date: number): number =>
  instantOrJump(date * DAY + cadence.offsetHour * HOUR, cadenceZone(cadence));

/** Returns the first date, from `date` on in steps of 1 or -1, on which an interval begins. */
function nearestDate(cadence: Cadence, date: number, step: 1 | -1): number {
  let found = date;
  if (cadence.interval === 'week') {
    while (weekdayOf(found) !== cadence.offsetDay) found += step;
    return found;
  }
  const zone = cadenceZone(cadence);
  while (!hasDate(zone, found)) found += step;
  return found;
}

/** Returns the date on which the day or week that contains the instant began. */
function dateAt(cadence: Cadence, instant: number): number {
  const zone = cadenceZone(cadence);
  const wall = instant + zone.offsetAt(instant) - cadence.offsetHour * HOUR;
  // Near a change of the clocks, the wall clock may be a day off.
  let date = nearestDate(cadence, Math.floor(wall / DAY) + 1, -1);
  while (startOfDate(cadence, date) > instant) date = nearestDate(cadence, date - 1, -1);
  return date;
}

/** Returns the interval that contains the instant, as if there were no seam. */
function seamlessAt(cadence: Cadence, instant: number): Interval {
  const length = fixedLength(cadence);
  if (length !== undefined) {
    const start = Math.floor(instant / length) * length;
    return { start, end: start + length };
  }
  const date = dateAt(cadence, instant);
  return {
    start: startOfDate(cadence, date),
    end: startOfDate(cadence, nearestDate(cadence, date + 1, 1)),
  };
}

/** Cuts an interval in two if the seam lies inside it. */
function* cutAtSeam({ seam }: Cadence, interval: Interval): Generator<Interval> {
  if (seam === undefined || seam <= interval.start || seam >= interval.end) {
    yield interval;
    return;
  }
  yield { start: interval.start, end: seam };
  yield { start: seam, end: interval.end };
}

/** Returns the interval that contains the instant. */
export function intervalAt(cadence: Cadence, instant: number): Interval {
  const whole = seamlessAt(cadence, instant);
  for (const one of cutAtSeam(cadence, whole)) if (instant < one.end) return one;
  return whole;
}

/** Returns the last interval that is over at the instant. */
export const lastComplete = (cadence: Cadence, instant: number): Interval =>
  intervalAt(cadence, intervalAt(cadence, instant).start - 1);

/** Whether an interval begins, and another ends, at the instant. */
export const isEdge = (cadence: Cadence, instant: number): boolean =>
  intervalAt(cadence, instant).start === instant;

/**
 * Returns the interval that ends at the nominal time of a schedule, or null if none does. A schedule may fire twice
 * when the clocks are set back over its hour. The first time is no edge, so there is nothing to do.
 */
export function intervalEndingAt(cadence: Cadence, nominal: number): Interval | null {
  const interval = intervalAt(cadence, nominal - 1);
  return interval.end === nominal ? interval : null;
}

/** Returns the smallest range of whole intervals that contains [start, end). */
export function alignOutward(cadence: Cadence, { start, end }: Interval): Interval {
  return {
    start: intervalAt(cadence, start).start,
    end: isEdge(cadence, end) ? end : intervalAt(cadence, end).end,
  };
}

/** Returns the largest range of whole intervals within [start, end). It is empty (start = end) if there is none. */
export function alignInward(cadence: Cadence, { start, end }: Interval): Interval {
  const first = isEdge(cadence, start) ? start : intervalAt(cadence, start).end;
  return { start: first, end: Math.max(first, intervalAt(cadence, end).start) };
}

/** Lists the whole intervals within [start, end), in order. */
export function* intervalsWithin(cadence: Cadence, range: Interval): Generator<Interval> {
  const { start, end } = alignInward(cadence, range);
  if (start >= end) return;
  for (const whole of seamlessFrom(cadence, seamlessAt(cadence, start).start)) {
    if (whole.start >= end) return;
    for (const one of cutAtSeam(cadence, whole)) if (one.start >= start && one.end <= end) yield one;
  }
}

/** Lists the intervals from an edge on, without end, as if there were no seam. */
function* seamlessFrom(cadence: Cadence, start: number): Generator<Interval> {
  const length = fixedLength(cadence);
  if (length !== undefined) for (let at = start; ; at += length) yield { start: at, end: at + length };
  let date = dateAt(cadence, start);
  for (let at = start; ; ) {
    date = nearestDate(cadence, date + 1, 1);
    const next = startOfDate(cadence, date);
    yield { start: at, end: next };
    at = next;
  }
}

/** Returns how many intervals `intervalsWithin` lists, without listing them. */
export function countWithin(cadence: Cadence, range: Interval): number {
  const { start, end } = alignInward(cadence, range);
  if (start >= end) return 0;
  const { seam } = cadence;
  const inside = seam !== undefined && start < seam && seam < end && seamlessAt(cadence, seam).start !== seam;
  const last = seamlessAt(cadence, end - 1).end;
  return countSeamless(cadence, { start: seamlessAt(cadence, start).start, end: last }) + (inside ? 1 : 0);
}

/** Counts the intervals between two edges, as if there were no seam. */
function countSeamless(cadence: Cadence, { start, end }: Interval): number {
  const length = fixedLength(cadence);
  if (length !== undefined) return (end - start) / length;
  const dates = dateAt(cadence, end) - dateAt(cadence, start);
  if (cadence.interval === 'week') return dates / 7;
  return dates - missingDates(cadenceZone(cadence), start, end);
}

/** Counts the dates that a zone leaves out. From such a date on, the zone is a day further east. */
function missingDates(zone: Zone, from: number, to: number): number {
  const step = 3 * DAY;
  const last = Math.min(to, ZONE_DATA.to);
  let missing = 0;
  for (let at = Math.max(from, ZONE_DATA.from); at < last; at += step) {
    const next = Math.min(at + step, last);
    if (zone.offsetAt(next) - zone.offsetAt(at) > 20 * HOUR) missing += 1;
  }
  return missing;
}
