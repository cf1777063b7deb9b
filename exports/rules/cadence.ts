import { type Cadence, cadenceOf } from '../../intervals/index.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';

/** How an export cuts time into intervals. */
export const cadenceOfRow = (
  row: Pick<BatchExportRow, 'interval' | 'timezone' | 'interval_offset'> &
    Partial<Pick<BatchExportRow, 'seam_at'>>,
): Cadence =>
  cadenceOf(row.interval, row.timezone, row.interval_offset, row.seam_at ? Date.parse(row.seam_at) : null);
