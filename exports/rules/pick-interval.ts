import { type Interval, intervalAt, lastComplete } from '../../intervals/index.ts';
import { refuse } from '../../refusals.ts';
import { instantText } from '../../values/dates.ts';
import { type CadenceFields, cadenceOfRow } from './cadence.ts';

/** How a user names an interval: by its beginning, its end, both, or not at all. The times are in ISO 8601. */
export interface IntervalChoice {
  start_at?: string | null | undefined;
  end_at?: string | null | undefined;
}

/** Finds the interval that the user names. Without a name it is the last finished one. */
export function pickInterval(
  row: CadenceFields,
  { start_at, end_at }: IntervalChoice,
  now: number,
): Interval {
  const cadence = cadenceOfRow(row);
  if (!start_at && !end_at) return lastComplete(cadence, now);
  const interval = start_at
    ? intervalAt(cadence, Date.parse(start_at))
    : intervalAt(cadence, Date.parse(end_at as string) - 1);
  if (start_at && interval.start !== Date.parse(start_at)) {
    throw refuse.invalid(
      'start_at',
      `No interval of this batch export begins at this time. One begins at ${instantText(interval.start)}.`,
    );
  }
  if (end_at && interval.end !== Date.parse(end_at)) {
    throw refuse.invalid(
      'end_at',
      `No interval of this batch export ends at this time. One ends at ${instantText(interval.end)}.`,
    );
  }
  return interval;
}

/** Finds the interval that the user names, as `pickInterval` does, but refuses one that has not ended. */
export function pickCompleteInterval(row: CadenceFields, choice: IntervalChoice, now: number): Interval {
  const interval = pickInterval(row, choice, now);
  if (interval.end <= now) return interval;
  throw refuse.invalid(
    choice.start_at ? 'start_at' : 'end_at',
    `This interval has not ended. It ends at ${instantText(interval.end)}.`,
  );
}
