import { type Transaction, transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { changes } from '../../tenancy/audit.ts';
import { NoSeamError, seamOf } from '../reads/seam.ts';
import { shownExport } from '../reads/shown-export.ts';
import { activeBackfills, type BackfillRow } from '../rows/backfills.ts';
import {
  type BatchExportRow,
  type ExportKey,
  findVersion,
  keyOf,
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
import {
  type ExportInput,
  type PreparedExport,
  prepareExport,
  refuseUnknownCohorts,
  refuseWritingOver,
} from './prepare.ts';

type Dependencies = Omit<ExportCommandDependencies, 'egress' | 'exportRoot' | 'mostExports'>;

/** How often a change is computed again because somebody else has changed the export meanwhile. */
const MOST_TRIES = 10;
const RETRY_SECONDS = 1;

/**
 * Changes an export, then its schedule. The change is computed before the transaction, because that may take long. If
 * somebody else changes the export meanwhile, it is computed again.
 */
export async function changeExport(
  deps: Dependencies,
  actor: Actor,
  key: ExportKey,
  input: ExportInput,
  signal?: AbortSignal,
): Promise<BatchExportRow> {
  const { pool, temporal } = deps;
  const { row, backfill } = await changeRow(deps, actor, key, input, signal);
  await follow(deps, actor, 'a changed export', async () => {
    await syncRow(pool, temporal, key.exportId);
    if (backfill) await temporal.startBackfill(row, backfill);
  });
  return row;
}

interface Changed {
  row: BatchExportRow;
  /** The backfill that begins with the change. */
  backfill?: BackfillRow;
}

async function changeRow(
  deps: Dependencies,
  actor: Actor,
  key: ExportKey,
  input: ExportInput,
  signal: AbortSignal | undefined,
): Promise<Changed> {
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const read = await findVersion(deps.pool, key);
    if (!read) throw refuse.absent();
    const prepared = await prepareExport(deps, { ...key, current: read.row }, input, signal);
    signal?.throwIfAborted();
    const changed = await transaction(deps.pool, async (client) => {
      const current = await findVersion(client, key, { lock: true });
      if (!current) throw refuse.absent();
      return current.version === read.version ? store(deps, client, actor, current.row, prepared) : undefined;
    });
    if (changed) return changed;
  }
  throw refuse.contested('Others are changing this batch export at the same time. Try again.', RETRY_SECONDS);
}

/** Stores a change of an export that the transaction has locked. */
async function store(
  deps: Pick<Dependencies, 'knownCohorts'>,
  client: Transaction,
  actor: Actor,
  current: BatchExportRow,
  prepared: PreparedExport,
): Promise<Changed> {
  const key = keyOf(current);
  await refuseUnknownCohorts(deps, client, key.projectId, prepared);
  await refuseWritingOver(client, actor, key.exportId, prepared);
  const changed = await updateBatchExport(client, key, prepared.fields);
  if (!changed) throw refuse.absent();
  const after = await recut(client, actor, current, changed);
  const { secrets } = prepared;
  await auditExport(client, actor, key, 'updated', {
    ...changes<object>(shownExport(current), shownExport(after.row)),
    ...(secrets.length > 0 ? { secrets_replaced: secrets } : {}),
  });
  return after;
}

const CANNOT = 'The intervals of a batch export cannot be changed';

/**
 * Makes sure that an export that is cut into other intervals misses nothing and exports nothing twice: the new
 * intervals begin where the exported ones end. A backfill exports the new intervals that have ended by then, because
 * the schedule does not come back to them.
 */
async function recut(
  client: Transaction,
  actor: Actor,
  before: BatchExportRow,
  changed: BatchExportRow,
): Promise<Changed> {
  if (isCutAlike(before, changed)) return { row: changed };
  const key = keyOf(before);
  if ((await activeBackfills(client, key)).length > 0) {
    throw refuse.invalid(
      'interval',
      `${CANNOT} while one of its backfills is in progress. Wait for the backfill, or cancel it.`,
    );
  }
  const now = Date.now();
  const seam = await seamOf(client, before, now).catch((error) => {
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
