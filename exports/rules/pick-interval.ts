import { type Interval, intervalAt, lastComplete } from '../../intervals/index.ts';
import { refuse } from '../../refusals.ts';
import { instantText } from '../../values/dates.ts';
import { type CadenceFields, cadenceOfRow } from './cadence.ts';

/** How somebody names an interval: by its beginning, by its end, by both, or not at all. As ISO 8601. */
export interface IntervalChoice {
  start_at?: string | null | undefined;
  end_at?: string | null | undefined;
}

/** Finds the interval that is named. If none is named, it is the last one that is over. */
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
      `No interval of this batch export begins then; one begins ${instantText(interval.start)}`,
    );
  }
  if (end_at && interval.end !== Date.parse(end_at)) {
    throw refuse.invalid(
      'end_at',
      `No interval of this batch export ends then; one ends ${instantText(interval.end)}`,
    );
  }
  return interval;
}

/** Finds the interval that is named, like `pickInterval`, and refuses one that is not over. */
export function pickCompleteInterval(row: CadenceFields, choice: IntervalChoice, now: number): Interval {
  const interval = pickInterval(row, choice, now);
  if (interval.end <= now) return interval;
  throw refuse.invalid(
    choice.start_at ? 'start_at' : 'end_at',
    `This interval is not over before ${instantText(interval.end)}`,
  );
}
