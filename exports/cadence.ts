import type { BatchExportRow } from '../db/batch-exports.ts';
import { type Cadence, cadenceOf } from '../intervals/index.ts';

/** How an export cuts time into intervals. */
export const cadenceOfRow = (
  row: Pick<BatchExportRow, 'interval' | 'timezone' | 'interval_offset'>,
): Cadence => cadenceOf(row.interval, row.timezone, row.interval_offset);
