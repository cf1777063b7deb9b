import type { Pool } from '../../db/pool.ts';
import { type BatchExportRow, insertBatchExport } from '../../exports/rows/batch-exports.ts';

/** An hourly export to a folder that is the same whenever the test runs. */
export async function insertFile(pool: Pool, projectId: number, id: string): Promise<BatchExportRow> {
  return insertBatchExport(pool, {
    project_id: projectId,
    id,
    name: 'hourly',
    model: 'events',
    destination_type: 'File',
    config: { directory: 'contract' },
    interval: 'hour',
  });
}
