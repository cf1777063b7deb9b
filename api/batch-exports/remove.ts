import type { FastifyRequest } from 'fastify';
import { transaction } from '../../db/pool.ts';
import { activeBackfills, markBackfillEnded } from '../../exports/rows/backfills.ts';
import { deleteBatchExport } from '../../exports/rows/batch-exports.ts';
import { activeRuns } from '../../exports/rows/run-lists.ts';
import { markRunEnded } from '../../exports/rows/runs.ts';
import { audit } from '../../tenancy/audit.ts';
import { actorOf } from '../actor.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { allOf, follow } from './follow.ts';
import { keyOf, placeOf } from './places.ts';

const REASON = 'The batch export was deleted.';

/** Deletes an export with all that is under way for it: the rows first, then what Temporal does. */
export async function removeExport(
  { pool, schedules }: Pick<ApiDependencies, 'pool' | 'schedules'>,
  request: FastifyRequest,
): Promise<void> {
  const key = keyOf(request.batchExport);
  const { projectId, exportId } = key;
  const stopped = await transaction(pool, async (client) => {
    if (!(await deleteBatchExport(client, key))) throw errors.notFound();
    const backfills = await activeBackfills(client, key);
    const runs = await activeRuns(client, key);
    // Their fences are taken from them: nothing of them is completed any more.
    for (const run of runs) await markRunEnded(client, { projectId, runId: run.id }, 'Cancelled', REASON);
    for (const one of backfills)
      await markBackfillEnded(client, { projectId, backfillId: one.id }, 'Cancelled', REASON);
    await audit(client, actorOf(request), {
      scope: 'BatchExport',
      itemId: exportId,
      activity: 'deleted',
      ...placeOf(request, projectId),
      detail: { name: request.batchExport.name },
    });
    return { backfills, runs };
  });
  const { exports } = schedules;
  await follow({ schedules }, request, 'a deleted export', () =>
    allOf([
      exports.remove(exportId),
      ...stopped.backfills.map((one) => exports.cancelBackfill(one)),
      ...stopped.runs.map((one) => exports.cancelRun(one)),
    ]),
  );
}
