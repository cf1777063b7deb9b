import type { FastifyRequest } from 'fastify';
import { type Transaction, transaction } from '../../db/pool.ts';
import { lockProject } from '../../db/projects.ts';
import { uuidv7 } from '../../db/uuid.ts';
import {
  type BatchExportRow,
  insertBatchExport,
  lockBatchExport,
  updateBatchExport,
} from '../../exports/rows/batch-exports.ts';
import { planFault, planQuery } from '../../models/index.ts';
import { syncRow } from '../../schedules/exports/sync-row.ts';
import { audit, changes } from '../../tenancy/audit.ts';
import { actorOf } from '../actor.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { type BatchExportPatch, batchExportView, type NewBatchExportBody } from '../exports/export-schema.ts';
import { follow } from './follow.ts';
import { keyOf, placeOf } from './places.ts';
import { type PreparedExport, prepareExport } from './prepare.ts';
import { recut } from './recut.ts';
import { refusing } from './refusals.ts';
import { refuseWritingOver } from './write-over.ts';

type Dependencies = Pick<ApiDependencies, 'pool' | 'parser' | 'keyring' | 'schedules'>;

/** Refuses columns and filters, when they are sent, that Postgres would not run: no run is to be the first to find out. */
async function requirePlan(
  client: Transaction,
  { query, fields }: PreparedExport,
  body: BatchExportPatch,
): Promise<void> {
  if (!body.hogql_query && !body.filters) return;
  await refusing(() =>
    planQuery(client, query).catch((error) => {
      throw planFault(error, fields);
    }),
  );
}

/** Makes an export: the row first, then its schedule. */
export async function createExport(
  deps: Dependencies,
  request: FastifyRequest,
  projectId: number,
  body: NewBatchExportBody,
): Promise<BatchExportRow> {
  const exportId = uuidv7();
  const prepared = await prepareExport(deps, { projectId, exportId }, body);
  const { fields, target } = prepared;
  const row = await transaction(deps.pool, async (client) => {
    await requirePlan(client, prepared, body);
    if (!(await lockProject(client, projectId))) throw errors.notFound('Project not found.');
    await refuseWritingOver(client, request, exportId, target);
    const created = await insertBatchExport(client, { ...fields, project_id: projectId, id: exportId });
    await audit(client, actorOf(request), {
      scope: 'BatchExport',
      itemId: exportId,
      activity: 'created',
      ...placeOf(request, projectId),
      detail: { name: created.name, model: created.model, destination: created.destination_type },
    });
    return created;
  });
  await follow(deps, request, 'a new export', () => syncRow(deps.pool, deps.schedules.exports, row.id));
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
    const prepared = await prepareExport(deps, { ...key, current }, body);
    const { fields, target, secrets } = prepared;
    await requirePlan(client, prepared, body);
    await refuseWritingOver(client, request, key.exportId, target);
    const changed = await updateBatchExport(client, key, fields);
    if (!changed) throw errors.notFound();
    const { row: updated, ...begun } = await recut({ pool: deps.pool, client }, request, current, changed);
    const detail = changes<object>(writable(current), writable(updated));
    await audit(client, actorOf(request), {
      scope: 'BatchExport',
      itemId: key.exportId,
      activity: 'updated',
      ...placeOf(request, key.projectId),
      detail: { ...detail, ...(secrets.length > 0 ? { secrets_replaced: secrets } : {}) },
    });
    return { row: updated, ...begun };
  });
  await follow(deps, request, 'a changed export', async () => {
    await syncRow(deps.pool, deps.schedules.exports, row.id);
    if (backfill) await deps.schedules.exports.startBackfill(row, backfill);
  });
  return row;
}
