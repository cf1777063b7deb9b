import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import { cadenceOfRow } from '../../exports/rules/cadence.ts';
import { offsetSeconds } from '../../intervals/index.ts';
import { errors } from '../errors.ts';
import type { BatchExportPatch } from '../exports/export-schema.ts';

export type CadenceFields = Pick<BatchExportRow, 'interval' | 'timezone' | 'interval_offset'>;

const refuse = (attr: string, detail: string) => errors.validation('invalid_input', detail, attr);

/** How time is cut after a change; what is not said stays, as far as the interval has it. */
export function cadenceFields(current: CadenceFields | undefined, body: BatchExportPatch): CadenceFields {
  const interval = body.interval ?? current?.interval ?? 'hour';
  const { offset_day: day, offset_hour: hour } = body;
  const isLong = interval === 'day' || interval === 'week';
  if (interval === 'day' && typeof day === 'number') {
    throw refuse('offset_day', 'offset_day should not be specified for daily intervals');
  }
  if (!isLong && typeof day === 'number') {
    throw refuse('offset_day', 'offset_day is not applicable for non-weekly intervals');
  }
  if (!isLong && typeof hour === 'number') {
    throw refuse('offset_hour', 'offset_hour is not applicable for non-daily/weekly intervals');
  }
  const timezone = body.timezone === undefined ? (current?.timezone ?? 'UTC') : (body.timezone ?? 'UTC');
  const known = current ? cadenceOfRow(current) : { offsetDay: 0, offsetHour: 0 };
  const cadence = {
    interval,
    timezone,
    offsetDay: interval !== 'week' ? 0 : day === undefined ? known.offsetDay : (day ?? 0),
    offsetHour: !isLong ? 0 : hour === undefined ? known.offsetHour : (hour ?? 0),
  };
  return { interval, timezone, interval_offset: offsetSeconds(cadence) };
}
