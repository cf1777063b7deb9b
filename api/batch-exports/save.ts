import type { FastifyRequest } from 'fastify';
import {
  type BatchExportRow,
  insertBatchExport,
  lockBatchExport,
  updateBatchExport,
} from '../../db/batch-exports.ts';
import { transaction } from '../../db/pool.ts';
import { lockProject } from '../../db/projects.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { audit, changes } from '../audit.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { type BatchExportPatch, batchExportView, type NewBatchExportBody } from '../schemas/batch-export.ts';
import { follow, syncExport } from './follow.ts';
import { keyOf, placeOf } from './places.ts';
import { prepareExport } from './prepare.ts';
import { recut } from './recut.ts';
import { refuseWritingOver } from './write-over.ts';

type Dependencies = Pick<ApiDependencies, 'pool' | 'parser' | 'keyring' | 'schedules'>;

/** Makes an export: the row first, then its schedule. */
export async function createExport(
  deps: Dependencies,
  request: FastifyRequest,
  projectId: number,
  body: NewBatchExportBody,
): Promise<BatchExportRow> {
  const exportId = uuidv7();
  const { fields, target } = await prepareExport(deps, { projectId, exportId }, body);
  const row = await transaction(deps.pool, async (client) => {
    if (!(await lockProject(client, projectId))) throw errors.notFound('Project not found.');
    await refuseWritingOver(client, request, exportId, target);
    const created = await insertBatchExport(client, { ...fields, project_id: projectId, id: exportId });
    await audit(client, request, {
      scope: 'BatchExport',
      itemId: exportId,
      activity: 'created',
      ...placeOf(request, projectId),
      detail: { name: created.name, model: created.model, destination: created.destination_type },
    });
    return created;
  });
  await follow(deps, request, 'a new export', () => syncExport(deps, row.id));
  return row;
}

/** What the activity log may show of an export: what anybody may see of it, less what is not set by anybody. */
function writable(row: BatchExportRow) {
  const {
    latest_runs: _runs,
    last_updated_at: _at,
    created_at: _created,
    ...shown
  } = batchExportView(row, []);
  return shown;
}

/** Changes an export as the body says, and nobody else at the same time; then its schedule. */
export async function changeExport(
  deps: Dependencies,
  request: FastifyRequest,
  body: BatchExportPatch,
): Promise<BatchExportRow> {
  const key = keyOf(request.batchExport);
  const { row, backfill } = await transaction(deps.pool, async (client) => {
    const current = await lockBatchExport(client, key);
    if (!current) throw errors.notFound();
    const { fields, target, secrets } = await prepareExport(deps, { ...key, current }, body);
    await refuseWritingOver(client, request, key.exportId, target);
    const changed = await updateBatchExport(client, key, fields);
    if (!changed) throw errors.notFound();
    const { row: updated, ...begun } = await recut({ pool: deps.pool, client }, request, current, changed);
    const detail = changes<object>(writable(current), writable(updated));
    await audit(client, request, {
      scope: 'BatchExport',
      itemId: key.exportId,
      activity: 'updated',
      ...placeOf(request, key.projectId),
      detail: { ...detail, ...(secrets.length > 0 ? { secrets_replaced: secrets } : {}) },
    });
    return { row: updated, ...begun };
  });
  await follow(deps, request, 'a changed export', async () => {
    await syncExport(deps, row.id);
    if (backfill) await deps.schedules.exports.startBackfill(row, backfill);
  });
  return row;
}
