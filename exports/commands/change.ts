import { type Pool, type Transaction, transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { changes } from '../../tenancy/audit.ts';
import { NoSeamError, seamOf } from '../reads/seam.ts';
import { shownExport } from '../reads/shown-export.ts';
import { activeBackfills, type BackfillRow } from '../rows/backfills.ts';
import {
  type BatchExportRow,
  type ExportKey,
  keyOf,
  lockBatchExport,
  setSeam,
  updateBatchExport,
} from '../rows/batch-exports.ts';
import { wholeRange } from '../rules/backfill-range.ts';
import { isCutAlike } from '../rules/cadence.ts';
import { syncRow } from '../sync-row.ts';
import { auditExport } from './audit.ts';
import { beginBackfill } from './backfill.ts';
import type { ExportCommandDependencies } from './dependencies.ts';
import { follow } from './follow.ts';
import { type ExportInput, prepareExport, refuseWritingOver, requirePlan } from './prepare.ts';

/** Changes an export, then its schedule. A lock keeps others from changing the export at the same time. */
export async function changeExport(
  deps: Pick<ExportCommandDependencies, 'pool' | 'compiler' | 'keyring' | 'temporal' | 'logger'>,
  actor: Actor,
  key: ExportKey,
  input: ExportInput,
): Promise<BatchExportRow> {
  const { pool, temporal } = deps;
  const { row, backfill } = await transaction(pool, async (client) => {
    const current = await lockBatchExport(client, key);
    if (!current) throw refuse.absent();
    const prepared = await prepareExport(deps, { ...key, current }, input);
    await requirePlan(client, prepared, input);
    await refuseWritingOver(client, actor, key.exportId, prepared);
    const changed = await updateBatchExport(client, key, prepared.fields);
    if (!changed) throw refuse.absent();
    const after = await recut({ pool, client }, actor, current, changed);
    const { secrets } = prepared;
    await auditExport(client, actor, key, 'updated', {
      ...changes<object>(shownExport(current), shownExport(after.row)),
      ...(secrets.length > 0 ? { secrets_replaced: secrets } : {}),
    });
    return after;
  });
  await follow(deps, actor, 'a changed export', async () => {
    await syncRow(pool, temporal, key.exportId);
    if (backfill) await temporal.startBackfill(row, backfill);
  });
  return row;
}

const CANNOT = 'The intervals of a batch export cannot be changed';

/**
 * Makes sure that an export that is cut into other intervals misses nothing and exports nothing twice: the new
 * intervals begin where the exported ones end. A backfill exports the new intervals that have ended by then, because
 * the schedule does not come back to them.
 */
async function recut(
  { pool, client }: { pool: Pool; client: Transaction },
  actor: Actor,
  before: BatchExportRow,
  changed: BatchExportRow,
): Promise<{ row: BatchExportRow; backfill?: BackfillRow }> {
  if (isCutAlike(before, changed)) return { row: changed };
  const key = keyOf(before);
  if ((await activeBackfills(client, key)).length > 0) {
    throw refuse.invalid(
      'interval',
      `${CANNOT} while one of its backfills is in progress. Wait for the backfill, or cancel it.`,
    );
  }
  const now = Date.now();
  const seam = await seamOf(pool, before, now).catch((error) => {
    if (!(error instanceof NoSeamError)) throw error;
    throw refuse.invalid('interval', `${CANNOT} now. ${error.message}`);
  });
  const row = (await setSeam(client, key, seam)) ?? changed;
  // While an export is paused, nothing is exported. Whoever resumes it decides about what the pause left out.
  if (before.paused || row.paused) return { row };
  const left = wholeRange(row, Date.parse(row.scheduled_from), now);
  if (!left) return { row };
  const { backfill, isNew } = await beginBackfill(client, actor, row, left);
  return isNew ? { row, backfill } : { row };
}
