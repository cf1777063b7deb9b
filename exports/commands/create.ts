import { transaction } from '../../db/pool.ts';
import { lockProject } from '../../db/projects.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { type BatchExportRow, insertBatchExport } from '../rows/batch-exports.ts';
import { syncRow } from '../sync-row.ts';
import { auditExport } from './audit.ts';
import type { ExportCommandDependencies } from './dependencies.ts';
import { follow } from './follow.ts';
import { type NewExportInput, prepareExport, refuseWritingOver, requirePlan } from './prepare.ts';

/** Creates an export: its row first, then its schedule. */
export async function createExport(
  deps: Pick<ExportCommandDependencies, 'pool' | 'compiler' | 'keyring' | 'temporal' | 'logger'>,
  actor: Actor,
  projectId: number,
  input: NewExportInput,
): Promise<BatchExportRow> {
  const { pool, temporal } = deps;
  const exportId = uuidv7();
  const key = { projectId, exportId };
  const prepared = await prepareExport(deps, key, input);
  const row = await transaction(pool, async (client) => {
    await requirePlan(client, prepared, input);
    if (!(await lockProject(client, projectId))) throw refuse.absent('Project not found.');
    await refuseWritingOver(client, actor, exportId, prepared);
    const created = await insertBatchExport(client, {
      ...prepared.fields,
      project_id: projectId,
      id: exportId,
    });
    const { name, model, destination_type: destination } = created;
    await auditExport(client, actor, key, 'created', { name, model, destination });
    return created;
  });
  await follow(deps, actor, 'a new export', () => syncRow(pool, temporal, exportId));
  return row;
}
