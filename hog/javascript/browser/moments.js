/** @import { BrowserFunction, Value } from './types.ts' */
import { localOf, midnight, momentOf, parseDate } from './calendar.js';
import {
  addInterval,
  difference,
  formatDate,
  localOfValue,
  secondsOf,
  truncated,
  weekdayOf,
  withTime,
} from './dates.js';

import { fail, isDate, isDateTime, newDate, newDateTime } from './values.js';

/**
 * Hog functions for dates.
 * @type {Record<string, BrowserFunction>}
 */
export const moments = {
  now: () => newDateTime(Date.now() / 1000, 'UTC'),
  today: () => {
    const { year, month, day } = localOf(Date.now(), 'UTC');
    return newDate(year, month, day);
  },
  toDate: ([value]) => {
    const local = typeof value === 'number' ? localOf(value * 1000, 'UTC') : parseDate(value, 'UTC')?.local;
    return newDate(local?.year ?? Number.NaN, local?.month ?? Number.NaN, local?.day ?? Number.NaN);
  },
  toDateTime: ([value, zone]) =>
    newDateTime(
      typeof value === 'number' ? value : (parseDate(value, zone || 'UTC')?.seconds ?? Number.NaN),
      zone,
    ),
  toUnixTimestamp: ([value, zone]) =>
    secondsOf(value) ?? parseDate(value, zone || 'UTC')?.seconds ?? Number.NaN,
  toUnixTimestampMilli: ([value, zone]) =>
    (secondsOf(value) ?? parseDate(value, zone || 'UTC')?.seconds ?? Number.NaN) * 1000,
  fromUnixTimestamp: ([value]) =>
    newDateTime(isDate(value) ? secondsOf(value) : typeof value === 'string' ? Number(value) : value),
  fromUnixTimestampMilli: ([value]) => newDateTime(value / 1000),
  toTimeZone: ([value, zone]) => (isDateTime(value) ? { ...value, zone } : fail('Expected a DateTime')),
  formatDateTime: ([value, format, zone]) => formatDate(value, format, zone),
  dateAdd: ([unit, amount, value]) => addInterval(value, amount, unit),
  addDays: ([value, days]) => addInterval(value, days, 'day'),
  dateDiff: ([unit, from, to]) => difference(unit, from, to),
  dateTrunc: ([unit, value]) => truncated(value, unit),
  extract: ([part, value]) => {
    /** @type {Value} */
    const local = localOfValue(value);
    return ['year', 'month', 'day', 'hour', 'minute', 'second'].includes(part)
      ? local[part]
      : fail(`Unknown extract part: ${part}`);
  },
  toYear: ([value]) => localOfValue(value).year,
  toMonth: ([value]) => localOfValue(value).month,
  toYYYYMM: ([value]) => localOfValue(value).year * 100 + localOfValue(value).month,
  toStartOfDay: ([value]) => truncated(withTime(value), 'day'),
  toStartOfHour: ([value]) => truncated(withTime(value), 'hour'),
  toStartOfMonth: ([value]) => truncated(withTime(value), 'month'),
  toStartOfWeek: ([value]) => {
    const { dt, zone } = withTime(value);
    const local = localOf(dt * 1000, zone);
    const monday = midnight(local.year, local.month, local.day + 1 - weekdayOf(local));
    return newDateTime(momentOf(monday, zone) / 1000, zone);
  },
  toIntervalDay: ([value]) => ({ __hogInterval__: true, value, unit: 'day' }),
  toIntervalHour: ([value]) => ({ __hogInterval__: true, value, unit: 'hour' }),
  toIntervalMinute: ([value]) => ({ __hogInterval__: true, value, unit: 'minute' }),
  toIntervalMonth: ([value]) => ({ __hogInterval__: true, value, unit: 'month' }),
};
