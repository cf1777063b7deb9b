import type { FastifyRequest } from 'fastify';
import { type Transaction, transaction } from '../../db/pool.ts';
import { type BackfillRow, findBackfill, markBackfillEnded } from '../../exports/rows/backfills.ts';
import { insertLogs } from '../../exports/rows/logs.ts';
import { activeRuns, findRun } from '../../exports/rows/run-lists.ts';
import { markRunEnded, type RunRow } from '../../exports/rows/runs.ts';
import { audit } from '../../tenancy/audit.ts';
import { actorOf } from '../actor.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { allOf, follow } from './follow.ts';
import { keyOf, placeOf } from './places.ts';

type Dependencies = Pick<ApiDependencies, 'pool' | 'schedules'>;

const REASON = 'Cancelled by a user.';
const over = (what: string, status: string) =>
  errors.validation('invalid_input', `Cannot cancel a ${what} that is in '${status}' status`, null);

/** Its workflow finds the row ended, and has nothing left to say. */
async function endAndSay(client: Transaction, run: RunRow): Promise<boolean> {
  const { project_id: projectId, id: runId, batch_export_id: exportId } = run;
  if (!(await markRunEnded(client, { projectId, runId }, 'Cancelled', REASON))) return false;
  await insertLogs(client, { projectId, exportId }, runId, [
    { level: 'WARNING', message: 'Batch export was cancelled' },
  ]);
  return true;
}

/** Ends a run at once; its workflow then finds that it may complete nothing any more, and cleans up. */
export async function cancelRun(
  { pool, schedules }: Dependencies,
  request: FastifyRequest,
  run: RunRow,
): Promise<void> {
  const { exports } = schedules;
  const { project_id: projectId, id: runId, batch_export_id: itemId } = run;
  await transaction(pool, async (client) => {
    if (!(await endAndSay(client, run))) {
      const now = await findRun(client, { projectId, runId });
      throw over('run', now?.status ?? run.status);
    }
    await audit(client, actorOf(request), {
      scope: 'BatchExport',
      itemId,
      activity: 'cancelled',
      ...placeOf(request, projectId),
      detail: { run: runId },
    });
  });
  await follow({ schedules }, request, 'a cancelled run', () => exports.cancelRun(run));
}

/** Ends a backfill with those of its runs that are under way. */
export async function cancelBackfill(
  { pool, schedules }: Dependencies,
  request: FastifyRequest,
  backfill: BackfillRow,
): Promise<void> {
  const { exports } = schedules;
  const { project_id: projectId, id: backfillId, batch_export_id: itemId } = backfill;
  const runs = await transaction(pool, async (client) => {
    if (!(await markBackfillEnded(client, { projectId, backfillId }, 'Cancelled', REASON))) {
      const now = await findBackfill(client, { projectId, backfillId });
      throw over('backfill', now?.status ?? backfill.status);
    }
    const active = await activeRuns(client, keyOf(request.batchExport), backfillId);
    for (const run of active) await endAndSay(client, run);
    await insertLogs(client, keyOf(request.batchExport), null, [
      { level: 'WARNING', message: 'Backfill was cancelled' },
    ]);
    await audit(client, actorOf(request), {
      scope: 'BatchExport',
      itemId,
      activity: 'cancelled',
      ...placeOf(request, projectId),
      detail: { backfill: backfillId },
    });
    return active;
  });
  // The backfill first: it must not begin another run.
  await follow({ schedules }, request, 'a cancelled backfill', async () => {
    await exports.cancelBackfill(backfill);
    await allOf(runs.map((run) => exports.cancelRun(run)));
  });
}
