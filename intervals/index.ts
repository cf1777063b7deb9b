export {
  BackfillRangeError,
  readBackfillRange,
} from './backfill-range.ts';
export {
  type Cadence,
  cadenceOf,
  INTERVAL_LENGTHS,
  type IntervalLength,
  offsetSeconds,
} from './cadence.ts';
export {
  type Interval,
  type IntervalText,
  intervalText,
  type OpenInterval,
  rangeText,
  readInterval,
} from './interval.ts';
export {
  alignOutward,
  countWithin,
  intervalAt,
  intervalEndingAt,
  intervalsWithin,
  lastComplete,
} from './intervals.ts';
export { jitterOf, MAX_JITTER } from './jitter.ts';
export { type ScheduleTimes, scheduleTimes, WEEKDAYS } from './temporal-spec.ts';
