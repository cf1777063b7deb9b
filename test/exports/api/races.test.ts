import { beforeAll, expect, test } from '@jest/globals';
import { transaction } from '../../../db/pool.ts';
import { deleteBatchExport } from '../../../exports/rows/batch-exports.ts';
import { markRunEnded, startRun } from '../../../exports/rows/runs.ts';
import { apiForFile, type Tenant } from '../../support/api.ts';
import { eventually } from '../../support/eventually.ts';
import { refusals } from '../../support/refusals.ts';

const HOUR = 3_600_000;
const api = apiForFile();
const last = Math.floor(Date.now() / HOUR) * HOUR - HOUR;
const range = { start_at: new Date(last).toISOString(), end_at: new Date(last + HOUR).toISOString() };
let anna: Tenant;
let exports: string;
beforeAll(async () => {
  anna = await api.createTenant('Anna');
  exports = `/api/projects/${anna.projectId}/batch_exports/`;
});

/** An export with a run that is over. */
async function createExport() {
  const destination = { type: 'NoOp', config: {} };
  const made = await api.request(anna, 'POST', exports, { name: 'Gone', interval: 'hour', destination });
  const [projectId, exportId] = [anna.projectId, made.json().id as string];
  const { run } = await startRun(api.pool, {
    ...{ projectId, exportId, workflowId: exportId, workflowRunId: exportId },
    ...{ start: range.start_at, end: range.end_at },
  });
  await markRunEnded(api.pool, { projectId, runId: run.id }, 'Failed', 'no such bucket');
  return { key: { projectId, exportId }, runId: run.id };
}

test.each([
  ['a backfill', () => 'backfills/', range],
  ['a backfill by its older path', () => 'backfill/', range],
  ['a retry', (runId: string) => `runs/${runId}/retry/`, {}],
])('%s that is asked for while the export is being deleted is not begun', async (_what, pathOf, body) => {
  const { key, runId } = await createExport();
  let answered = false;
  const asked = await transaction(api.pool, async (client) => {
    await deleteBatchExport(client, key);
    const answer = api
      .request(anna, 'POST', `${exports}${key.exportId}/${pathOf(runId)}`, body)
      .finally(() => {
        answered = true;
      });
    // It has found the export, and waits for what becomes of it.
    await eventually(async () => {
      const { rows } = await api.pool.query(
        "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
      return answered || rows.length > 0;
    });
    return { answer };
  });
  const answer = await asked.answer;
  const { rows } = await api.pool.query('select from batch_export_backfills where batch_export_id = $1', [
    key.exportId,
  ]);
  expect([answer.statusCode, answer.json(), rows]).toEqual([
    404,
    refusals.notFound('BatchExport not found.'),
    [],
  ]);
});
