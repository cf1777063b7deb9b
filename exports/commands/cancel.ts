import { type Transaction, transaction } from '../../db/pool.ts';
import { type Refusal, refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import {
  BACKFILL_CANCELLED,
  endBackfill,
  endRun,
  RUN_CANCELLED,
  type RunEnding,
  stopWorkflows,
} from '../ending.ts';
import { type BackfillRow, findBackfill } from '../rows/backfills.ts';
import type { ExportKey } from '../rows/batch-exports.ts';
import { findRun } from '../rows/run-lists.ts';
import type { RunRow } from '../rows/runs.ts';
import { auditExport } from './audit.ts';
import type { ExportCommandDependencies } from './dependencies.ts';
import { follow } from './follow.ts';

type Dependencies = Pick<ExportCommandDependencies, 'pool' | 'temporal' | 'logger'>;

const WHO: Readonly<Record<Actor['kind'], string>> = {
  user: 'a user',
  operator: 'the operator',
  system: 'Sluice',
};
const cancelledBy = ({ kind }: Actor) =>
  ({ status: 'Cancelled', reason: `Cancelled by ${WHO[kind]}.`, log: RUN_CANCELLED }) satisfies RunEnding;

const over = (what: string, status: string): Refusal =>
  refuse.invalid(null, `Cannot cancel a ${what} that is in '${status}' status`);

const keyOfExport = (one: RunRow | BackfillRow): ExportKey => ({
  projectId: one.project_id,
  exportId: one.batch_export_id,
});

/** Cancels a run. Its row ends at once. Its workflow then finds that it can complete nothing, and cleans up. */
export async function cancelRun(deps: Dependencies, actor: Actor, run: RunRow): Promise<void> {
  const { project_id: projectId, id: runId } = run;
  await transaction(deps.pool, async (client) => {
    if (!(await endRun(client, run, cancelledBy(actor)))) {
      const now = await findRun(client, { projectId, runId });
      throw over('run', now?.status ?? run.status);
    }
    await auditExport(client, actor, keyOfExport(run), 'cancelled', { run: runId });
  });
  await follow(deps, actor, 'a cancelled run', () => stopWorkflows(deps.temporal, [], [run]));
}

/** Cancels a backfill and its runs in progress. */
export async function cancelBackfill(deps: Dependencies, actor: Actor, backfill: BackfillRow): Promise<void> {
  const runs = await transaction(deps.pool, (client) => end(client, actor, backfill));
  await follow(deps, actor, 'a cancelled backfill', () => stopWorkflows(deps.temporal, [backfill], runs));
}

/** Returns the runs that were ended with the backfill. */
async function end(client: Transaction, actor: Actor, backfill: BackfillRow): Promise<RunRow[]> {
  const { project_id: projectId, id: backfillId } = backfill;
  const ending = cancelledBy(actor);
  const ended = await endBackfill(client, backfill, { ...ending, log: BACKFILL_CANCELLED, runs: ending });
  if (!ended) {
    const now = await findBackfill(client, { projectId, backfillId });
    throw over('backfill', now?.status ?? backfill.status);
  }
  await auditExport(client, actor, keyOfExport(backfill), 'cancelled', { backfill: backfillId });
  return ended.runs;
}
