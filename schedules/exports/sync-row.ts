import type { Queryable } from '../../db/pool.ts';
import { type BatchExportRow, findBatchExportById } from '../../exports/rows/batch-exports.ts';
import type { ExportTemporal } from '../../exports/temporal.ts';

/**
 * Makes the schedule of an export what its row says, also when the row is changed meanwhile: what counts is how it is
 * afterwards. Without a row there is no schedule. False: there was nothing to do.
 */
export async function syncRow(
  queryable: Queryable,
  schedules: Pick<ExportTemporal, 'sync' | 'remove'>,
  exportId: string,
): Promise<boolean> {
  let changed = false;
  let synced: BatchExportRow | undefined;
  for (;;) {
    const row = await findBatchExportById(queryable, exportId);
    if (!row) return (await schedules.remove(exportId)) || changed;
    if (synced?.last_updated_at === row.last_updated_at) return changed;
    changed = (await schedules.sync(row)) || changed;
    synced = row;
  }
}
