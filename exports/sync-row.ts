import type { Queryable } from '../db/pool.ts';
import { type BatchExportRow, findBatchExportById } from './rows/batch-exports.ts';
import type { ExportTemporal } from './temporal.ts';

/**
 * Makes the schedule of an export agree with its row, and removes it if there is no row. Repeats that if the row
 * changes meanwhile. False: there was nothing to do.
 */
export async function syncRow(
  queryable: Queryable,
  temporal: Pick<ExportTemporal, 'sync' | 'remove'>,
  exportId: string,
): Promise<boolean> {
  let changed = false;
  let synced: BatchExportRow | undefined;
  for (;;) {
    const row = await findBatchExportById(queryable, exportId);
    if (!row) return (await temporal.remove(exportId)) || changed;
    if (synced?.last_updated_at === row.last_updated_at) return changed;
    changed = (await temporal.sync(row)) || changed;
    synced = row;
  }
}
