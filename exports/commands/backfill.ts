import { type Transaction, transaction } from '../../db/pool.ts';
import { takesOpenEnd } from '../../destinations/registry.ts';
import { countWithin, intervalText, type OpenInterval } from '../../intervals/index.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { type BackfillRow, insertBackfill } from '../rows/backfills.ts';
import { type BatchExportRow, keyOf, lockBatchExport } from '../rows/batch-exports.ts';
import { type BackfillInput, readRange } from '../rules/backfill-range.ts';
import { cadenceOfRow } from '../rules/cadence.ts';
import { backfillWorkflowId } from '../rules/workflow-ids.ts';
import { auditExport } from './audit.ts';
import type { ExportCommandDependencies } from './dependencies.ts';
import { follow } from './follow.ts';

/** How many backfills of a project may be in progress at once. */
export const MOST_BACKFILLS = 10;
const RETRY_SECONDS = 60;

export interface BegunBackfill {
  backfill: BackfillRow;
  /** False: this backfill of the same range was in progress already. */
  isNew: boolean;
}

/** Makes the row of a backfill. The caller starts its workflow after the commit, if the backfill is new. */
export async function beginBackfill(
  client: Transaction,
  actor: Actor,
  row: BatchExportRow,
  range: OpenInterval,
): Promise<BegunBackfill> {
  const key = keyOf(row);
  const { start, end } = range;
  // Counting many years of days takes a while, so it comes before the lock.
  const totalRuns = start === null ? 1 : countWithin(cadenceOfRow(row), { start, end });
  // The lock holds up a deletion of the export. When the deletion continues, it finds this backfill and cancels it.
  if (!(await lockBatchExport(client, key))) throw refuse.absent('BatchExport not found.');
  const text = intervalText(range);
  const begun = await insertBackfill(
    client,
    {
      ...key,
      ...text,
      workflowId: backfillWorkflowId(row.id, text),
      totalRuns,
    },
    MOST_BACKFILLS,
  );
  if (begun.outcome === 'too_many') {
    throw refuse.crowded(
      `This team already has ${begun.active} batch export backfills running. Wait for some to finish or cancel them ` +
        'before creating more.',
      RETRY_SECONDS,
    );
  }
  const { backfill } = begun;
  const isNew = begun.outcome === 'started';
  if (isNew) {
    const { start_at, end_at } = backfill;
    await auditExport(client, actor, key, 'backfilled', { backfill: backfill.id, start_at, end_at });
  }
  return { backfill, isNew };
}

/** Exports a range of the past: the whole intervals that overlap it and have ended. */
export async function backfillExport(
  deps: Pick<ExportCommandDependencies, 'pool' | 'temporal' | 'logger'>,
  actor: Actor,
  row: BatchExportRow,
  input: BackfillInput,
): Promise<BegunBackfill> {
  const range = readRange(row, input, { now: Date.now(), openEnd: takesOpenEnd(row.destination_type) });
  const begun = await transaction(deps.pool, (client) => beginBackfill(client, actor, row, range));
  if (begun.isNew) {
    await follow(deps, actor, 'a backfill', () => deps.temporal.startBackfill(row, begun.backfill));
  }
  return begun;
}
