import type { z } from 'zod';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import { cadenceOfRow } from '../../exports/rules/cadence.ts';
import { type Interval, intervalAt, lastComplete } from '../../intervals/index.ts';
import { instantText } from '../../values/dates.ts';
import { errors } from '../errors.ts';
import { instant } from '../fields.ts';

const refuse = (attr: string, detail: string) => errors.validation('invalid_input', detail, attr);

/** How a body names an interval. */
export const intervalChoice = {
  start_at: instant
    .nullish()
    .meta({ description: 'Where an interval begins. Default: the last that is over.' }),
  end_at: instant.nullish().meta({ description: 'Where it ends.' }),
};
export type IntervalChoice = z.output<z.ZodObject<typeof intervalChoice>>;

/** The interval that is named by its beginning, its end or both; the last one that is over if none is. */
export function pickInterval(
  row: Pick<BatchExportRow, 'interval' | 'timezone' | 'interval_offset'>,
  { start_at, end_at }: IntervalChoice,
  now: number,
): Interval {
  const cadence = cadenceOfRow(row);
  if (!start_at && !end_at) return lastComplete(cadence, now);
  const interval = start_at
    ? intervalAt(cadence, Date.parse(start_at))
    : intervalAt(cadence, Date.parse(end_at as string) - 1);
  if (start_at && interval.start !== Date.parse(start_at)) {
    throw refuse(
      'start_at',
      `No interval of this batch export begins then; one begins ${instantText(interval.start)}`,
    );
  }
  if (end_at && interval.end !== Date.parse(end_at)) {
    throw refuse(
      'end_at',
      `No interval of this batch export ends then; one ends ${instantText(interval.end)}`,
    );
  }
  return interval;
}

/** The same, and it is over. */
export function pickCompleteInterval(
  row: Pick<BatchExportRow, 'interval' | 'timezone' | 'interval_offset'>,
  choice: IntervalChoice,
  now: number,
): Interval {
  const interval = pickInterval(row, choice, now);
  if (interval.end <= now) return interval;
  throw refuse(
    choice.start_at ? 'start_at' : 'end_at',
    `This interval is not over before ${instantText(interval.end)}`,
  );
}
