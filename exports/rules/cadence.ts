import { type Cadence, cadenceOf, type IntervalLength, offsetSeconds } from '../../intervals/index.ts';
import { refuse } from '../../refusals.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';
import { isOnce, lengthOf } from './once.ts';

/** The columns that say how an export cuts time into intervals. */
export type CadenceFields = Pick<BatchExportRow, 'interval' | 'timezone' | 'interval_offset'>;

/** Returns how an export cuts time into intervals. Refuses an export that runs once. */
export const cadenceOfRow = (row: CadenceFields & Partial<Pick<BatchExportRow, 'seam_at'>>): Cadence =>
  cadenceOf(lengthOf(row), row.timezone, row.interval_offset, row.seam_at ? Date.parse(row.seam_at) : null);

/** What a user sets about the intervals of an export. */
export interface CadenceInput {
  interval?: IntervalLength | 'once' | undefined;
  /** Null: UTC. */
  timezone?: string | null | undefined;
  /** The day that weeks begin on; 0 is Sunday. */
  offset_day?: number | null | undefined;
  /** The local hour that days and weeks begin at. */
  offset_hour?: number | null | undefined;
}

const isLong = (interval: CadenceFields['interval']) => interval === 'day' || interval === 'week';

/**
 * Computes how an export cuts time after a change. Fields that are left out keep their values, if the interval has
 * them.
 */
export function cadenceFields(current: CadenceFields | undefined, input: CadenceInput): CadenceFields {
  const interval = input.interval ?? current?.interval ?? 'hour';
  if (current && isOnce(current) !== (interval === 'once')) {
    throw refuse.invalid(
      'interval',
      "Whether a batch export runs 'once' cannot be changed. Create another batch export instead.",
    );
  }
  if (interval === 'once') return onceFields(input);
  const { offset_day: day, offset_hour: hour } = input;
  if (interval === 'day' && typeof day === 'number') {
    throw refuse.invalid('offset_day', 'offset_day should not be specified for daily intervals');
  }
  if (!isLong(interval) && typeof day === 'number') {
    throw refuse.invalid('offset_day', 'offset_day is not applicable for non-weekly intervals');
  }
  if (!isLong(interval) && typeof hour === 'number') {
    throw refuse.invalid('offset_hour', 'offset_hour is not applicable for non-daily/weekly intervals');
  }
  const timezone = input.timezone === undefined ? (current?.timezone ?? 'UTC') : (input.timezone ?? 'UTC');
  const known = current ? cadenceOfRow(current) : { offsetDay: 0, offsetHour: 0 };
  const cadence = {
    interval,
    timezone,
    offsetDay: interval !== 'week' ? 0 : day === undefined ? known.offsetDay : (day ?? 0),
    offsetHour: !isLong(interval) ? 0 : hour === undefined ? known.offsetHour : (hour ?? 0),
  };
  return { interval, timezone, interval_offset: offsetSeconds(cadence) };
}

/** The zone of a query is that of its project, and there are no days that could begin at an hour. */
function onceFields({ timezone, offset_day, offset_hour }: CadenceInput): CadenceFields {
  const given = { timezone: timezone === 'UTC' ? null : timezone, offset_day, offset_hour };
  for (const [field, value] of Object.entries(given)) {
    if (value === undefined || value === null) continue;
    throw refuse.invalid(
      field,
      `A batch export that runs 'once' has no intervals, so '${field}' has no effect.`,
    );
  }
  return { interval: 'once', timezone: 'UTC', interval_offset: 0 };
}

/** Answers whether two exports, or two versions of one, cut time in the same way. */
export function isCutAlike(one: CadenceFields, other: CadenceFields): boolean {
  if (one.interval !== other.interval) return false;
  return (
    !isLong(one.interval) ||
    (one.timezone === other.timezone && one.interval_offset === other.interval_offset)
  );
}
