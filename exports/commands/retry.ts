import { transaction } from '../../db/pool.ts';
import { intervalEndingAt, type OpenInterval, readInterval } from '../../intervals/index.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';
import type { RunRow } from '../rows/runs.ts';
import { cadenceOfRow } from '../rules/cadence.ts';
import { type BegunBackfill, beginBackfill } from './backfill.ts';
import type { ExportCommandDependencies } from './dependencies.ts';
import { follow } from './follow.ts';

const RETRY_SECONDS = 1;

/**
 * Finds the interval of a run. Refuses one that the export does not have any more, because no backfill can export it.
 */
function intervalOf(row: BatchExportRow, run: RunRow): OpenInterval {
  const interval = readInterval({ start: run.data_interval_start, end: run.data_interval_end });
  const { start, end } = interval;
  if (start !== null && intervalEndingAt(cadenceOfRow(row), end)?.start !== start) {
    throw refuse.invalid(
      null,
      "The interval of this run is not one of the batch export's intervals. Create a backfill of the whole range instead.",
    );
  }
  return interval;
}

/** Exports the interval of an ended run again, as a backfill of this one interval. */
export async function retryRun(
  deps: Pick<ExportCommandDependencies, 'pool' | 'temporal' | 'logger'>,
  actor: Actor,
  row: BatchExportRow,
  run: RunRow,
): Promise<BegunBackfill> {
  if (run.status === 'Starting' || run.status === 'Running') {
    throw refuse.invalid(null, `Cannot retry a run that is in '${run.status}' status`);
  }
  const range = intervalOf(row, run);
  const begun = await transaction(deps.pool, (client) => beginBackfill(client, actor, row, range));
  if (begun.backfill.id === run.backfill_id) {
    // Its only run has ended, and it is about to. What it answered would be the old run.
    throw refuse.contested('The backfill of this run is just ending. Try again.', RETRY_SECONDS);
  }
  if (begun.isNew) {
    await follow(deps, actor, 'a retried run', () => deps.temporal.startBackfill(row, begun.backfill));
  }
  return begun;
}
