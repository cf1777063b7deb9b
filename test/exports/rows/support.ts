import type { Queryable } from '../../../db/pool.ts';
import { uuidv7 } from '../../../db/uuid.ts';
import type { BatchExportRow, ExportKey, NewBatchExport } from '../../../exports/rows/batch-exports.ts';
import { insertBatchExport } from '../../../exports/rows/batch-exports.ts';
import type { NewRun } from '../../../exports/rows/runs.ts';

export const newExport = (
  queryable: Queryable,
  given: Partial<NewBatchExport> = {},
): Promise<BatchExportRow> =>
  insertBatchExport(queryable, {
    project_id: 1,
    name: 'Lake',
    model: 'events',
    destination_type: 'File',
    config: { directory: 'lake' },
    interval: 'hour',
    ...given,
  });

export const keyOf = (row: BatchExportRow): ExportKey => ({ projectId: row.project_id, exportId: row.id });

export const hours = (n: number) => new Date(Date.UTC(2026, 0, 1) + n * 3_600_000).toISOString();

/** A run of the n-th hour. */
export const runOf = (key: ExportKey, n: number, given: Partial<NewRun> = {}): NewRun => ({
  ...key,
  workflowId: `${key.exportId}-${hours(n + 1)}`,
  workflowRunId: uuidv7(),
  start: hours(n),
  end: hours(n + 1),
  ...given,
});
