export {
  type BackfillRange,
  BackfillRangeError,
  type BackfillRules,
  readBackfillRange,
} from './backfill-range.ts';
export {
  type Cadence,
  cadenceOf,
  INTERVAL_LENGTHS,
  type IntervalLength,
  offsetSeconds,
} from './cadence.ts';
export { instantText } from './instant-text.ts';
export {
  type Interval,
  type IntervalText,
  intervalText,
  type OpenInterval,
  rangeText,
  readInterval,
} from './interval.ts';
export {
  alignInward,
  alignOutward,
  countWithin,
  intervalAt,
  intervalEndingAt,
  intervalsWithin,
  isEdge,
  lastComplete,
  nextInterval,
  previousInterval,
} from './intervals.ts';
export { jitterOf, MAX_JITTER } from './jitter.ts';
export { type CalendarSpec, type ScheduleTimes, scheduleTimes } from './temporal-spec.ts';
export { isZone } from './zone.ts';
