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
  type Interval,
  type IntervalLength,
  offsetSeconds,
} from './cadence.ts';
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
