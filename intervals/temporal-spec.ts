import { type Cadence, DAY, fixedLength, HOUR } from './cadence.ts';
import { weekdayOf } from './intervals.ts';
import { cadenceZone } from './zone.ts';

const WEEKDAYS = ['SUNDAY', 'MONDAY', 'TUESDAY', 'WEDNESDAY', 'THURSDAY', 'FRIDAY', 'SATURDAY'] as const;
const MONTHS = [
  ...(['JANUARY', 'FEBRUARY', 'MARCH', 'APRIL', 'MAY', 'JUNE'] as const),
  ...(['JULY', 'AUGUST', 'SEPTEMBER', 'OCTOBER', 'NOVEMBER', 'DECEMBER'] as const),
] as const;

/** A local time at which a schedule fires, in the form that Temporal's client takes. */
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

/** For how many years ahead the skipped local times are listed. */
const YEARS = 10;

/**
 * Returns the times at which the intervals of a cadence end, for a schedule in Temporal. Days and weeks need calendars,
 * because interval specs have no time zone. Temporal skips a local time that the clocks jump over, and the run of that
 * interval would be missing. So each such time is listed as the time that the clocks show after the jump, for ten years
 * from the beginning of `from`'s year. The result therefore changes at most once a year. At a time that the clocks show
 * twice, Temporal fires twice, or the second time only (east of Greenwich). The first time does no harm, see
 * `intervalEndingAt`.
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
  const [first, end] = [Date.UTC(year, 0, 1), Date.UTC(year + YEARS, 0, 1)];
  const hour = cadence.offsetHour * HOUR;
  const found: CalendarSpec[] = [];
  // Each zone is asked for the same times, whatever the hour, because finding the changes of its clocks takes long.
  for (const { at, before, after } of cadenceZone(cadence).changesWithin(first - 2 * DAY, end + 2 * DAY)) {
    // The clocks jump from `at + before` to `at + after`. If they go back, they skip nothing.
    for (let date = Math.ceil((at + before - hour) / DAY); date * DAY + hour < at + after; date += 1) {
      if (cadence.interval === 'week' && weekdayOf(date) !== cadence.offsetDay) continue;
      if (date >= first / DAY && date < end / DAY) found.push(shownAs(at + after));
    }
  }
  return found;
}

/** Returns the spec of one firing, at what the clocks show. */
function shownAs(wall: number): CalendarSpec {
  const clock = new Date(wall);
  return {
    year: clock.getUTCFullYear(),
    month: MONTHS[clock.getUTCMonth()] as (typeof MONTHS)[number],
    dayOfMonth: clock.getUTCDate(),
    hour: clock.getUTCHours(),
    minute: clock.getUTCMinutes(),
    second: clock.getUTCSeconds(),
    comment: 'the clocks jump over the usual hour',
  };
}
