import { type Transaction, transaction } from '../../db/pool.ts';
import { lockProject } from '../../db/projects.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { type BatchExportRow, hasBatchExports, insertBatchExport } from '../rows/batch-exports.ts';
import { isOnce, onceRange } from '../rules/once.ts';
import { syncRow } from '../sync-row.ts';
import { auditExport } from './audit.ts';
import { beginBackfill } from './backfill.ts';
import type { ExportCommandDependencies } from './dependencies.ts';
import { follow } from './follow.ts';
import { type NewExportInput, prepareExport, refuseUnknownCohorts, refuseWritingOver } from './prepare.ts';

/** Creates an export: its row first, then its schedule, or the run of one that runs once. */
export async function createExport(
  deps: ExportCommandDependencies,
  actor: Actor,
  projectId: number,
  input: NewExportInput,
  signal?: AbortSignal,
): Promise<BatchExportRow> {
  const { pool, temporal, mostExports } = deps;
  const exportId = uuidv7();
  const key = { projectId, exportId };
  const prepared = await prepareExport(deps, key, input, signal);
  const { row, run } = await transaction(pool, async (client) => {
    if (!(await lockProject(client, projectId))) throw refuse.absent('Project not found.');
    await refuseTooMany(client, projectId, mostExports);
    await refuseUnknownCohorts(deps, client, projectId, prepared);
    await refuseWritingOver(client, actor, exportId, prepared);
    const created = await insertBatchExport(client, {
      ...prepared.fields,
      project_id: projectId,
      id: exportId,
    });
    const { name, model, destination_type: destination } = created;
    await auditExport(client, actor, key, 'created', { name, model, destination });
    if (!isOnce(created)) return { row: created };
    // Maintenance starts a backfill that has no workflow, so the run begins even if this process ends now.
    const { backfill } = await beginBackfill(client, actor, created, onceRange(created));
    return { row: created, run: backfill };
  });
  await follow(deps, actor, 'a new export', async () => {
    if (run) await temporal.startBackfill(row, run);
    else await syncRow(pool, temporal, exportId);
  });
  return row;
}

/** So many times as many exports may be there that ran once and are done: they cost a row. */
const DONE = 10;

async function refuseTooMany(client: Transaction, projectId: number, most: number): Promise<void> {
  if (await hasBatchExports(client, projectId, { atLeast: most, done: false })) {
    throw refuse.invalid(
      null,
      `This project already has ${most} batch exports, the most that it may have. Delete one before creating another.`,
    );
  }
  if (await hasBatchExports(client, projectId, { atLeast: most * DONE, done: true })) {
    throw refuse.invalid(
      null,
      `This project already has ${most * DONE} batch exports that ran once, the most that it may have. Delete some before creating another.`,
    );
  }
}
