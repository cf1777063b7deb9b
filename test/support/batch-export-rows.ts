import { type Pool, transaction } from '../../db/pool.ts';
import { insertBackfill } from '../../exports/rows/backfills.ts';
import {
  type BatchExportRow,
  insertBatchExport,
  type NewBatchExport,
} from '../../exports/rows/batch-exports.ts';
import { insertLogs } from '../../exports/rows/logs.ts';
import type { Tenant } from './api.ts';
import { idsOf } from './routes.ts';

/** A batch export to nowhere with one run, one backfill and one log entry, under the ids of the tests of all routes. */
export async function insertExportOf(
  pool: Pool,
  tenant: Tenant,
  fields: Partial<NewBatchExport> = {},
): Promise<BatchExportRow> {
  const { id, run_id: runId, backfill_id: backfillId } = idsOf(tenant);
  const projectId = tenant.projectId;
  return transaction(pool, async (client) => {
    const row = await insertBatchExport(client, {
      project_id: projectId,
      id,
      name: 'To nowhere',
      model: 'events',
      destination_type: 'NoOp',
      config: {},
      interval: 'hour',
      ...fields,
    });
    const range = { start: '2026-01-01T00:00:00Z', end: '2026-01-01T01:00:00Z' };
    await insertBackfill(
      client,
      { projectId, exportId: id, id: backfillId, workflowId: `${id}-Backfill`, totalRuns: 1, ...range },
      10,
    );
    await client.query(
      `insert into batch_export_runs (project_id, id, batch_export_id, backfill_id, workflow_id, workflow_run_id, status,
         data_interval_start, data_interval_end, fence, finished_at, records_completed)
       values ($1, $2, $3, $4, $5, $6, 'Completed', $7, $8, nextval('batch_export_fences'), now(), 7)`,
      [projectId, runId, id, backfillId, `${id}-run`, `${runId}-workflow`, range.start, range.end],
    );
    await insertLogs(client, { projectId, exportId: id }, runId, [{ level: 'INFO', message: 'done' }]);
    return row;
  });
}
