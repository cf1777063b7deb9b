import { type Cadence, DAY, fixedLength, HOUR } from './cadence.ts';
import { startOfDate, weekdayOf } from './intervals.ts';
import { cadenceZone } from './zone.ts';

const WEEKDAYS = ['SUNDAY', 'MONDAY', 'TUESDAY', 'WEDNESDAY', 'THURSDAY', 'FRIDAY', 'SATURDAY'] as const;
const MONTHS = [
  ...(['JANUARY', 'FEBRUARY', 'MARCH', 'APRIL', 'MAY', 'JUNE'] as const),
  ...(['JULY', 'AUGUST', 'SEPTEMBER', 'OCTOBER', 'NOVEMBER', 'DECEMBER'] as const),
] as const;

/** A local time at which a schedule fires, in the words of Temporal's client. */
export interface CalendarSpec {
  year?: number;
  month?: (typeof MONTHS)[number];
  dayOfMonth?: number;
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
}

/** So many years ahead the times that the clocks jump over are written out. */
const YEARS = 10;

/**
 * The times at which the intervals of a cadence end, for a Temporal schedule. Days and weeks need calendars, as interval
 * specs know no time zones. Temporal leaves out a local time that the clocks jump over. That would be a missing run, so
 * those times are written out, as what the clocks show after the jump, for ten years from the beginning of `from`'s
 * year: what this gives changes once a year at most. At a time that the clocks show twice Temporal fires twice, or the
 * second time only (east of Greenwich); firing at the first does no harm, see `intervalEndingAt`.
 */
export function scheduleTimes(cadence: Cadence, from: number): ScheduleTimes {
  const every = fixedLength(cadence);
  if (every !== undefined) {
    return { calendars: [], intervals: [{ every, offset: 0 }], timezone: 'UTC' };
  }
  const { interval, offsetDay, offsetHour, timezone } = cadence;
  const weekly = interval === 'week' ? { dayOfWeek: WEEKDAYS[offsetDay] as (typeof WEEKDAYS)[number] } : {};
  return {
    calendars: [
      { ...weekly, hour: offsetHour, minute: 0, second: 0, comment: `every ${interval}` },
      ...jumpedOver(cadence, from),
    ],
    intervals: [],
    timezone,
  };
}

function jumpedOver(cadence: Cadence, from: number): CalendarSpec[] {
  const year = new Date(from).getUTCFullYear();
  const zone = cadenceZone(cadence);
  const found: CalendarSpec[] = [];
  const last = Date.UTC(year + YEARS, 0, 1) / DAY;
  for (let date = Date.UTC(year, 0, 1) / DAY; date < last; date += 1) {
    if (cadence.interval === 'week' && weekdayOf(date) !== cadence.offsetDay) continue;
    const start = startOfDate(cadence, date);
    const shown = start + zone.offsetAt(start);
    if (shown === date * DAY + cadence.offsetHour * HOUR) continue;
    const clock = new Date(shown);
    found.push({
      year: clock.getUTCFullYear(),
      month: MONTHS[clock.getUTCMonth()] as (typeof MONTHS)[number],
      dayOfMonth: clock.getUTCDate(),
      hour: clock.getUTCHours(),
      minute: clock.getUTCMinutes(),
      second: clock.getUTCSeconds(),
      comment: 'the clocks jump over the usual hour',
    });
  }
  return found;
}
