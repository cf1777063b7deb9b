import type { FastifyRequest } from 'fastify';
import type { Pool, Transaction } from '../../db/pool.ts';
import { NoSeamError, seamOf } from '../../exports/reads/seam.ts';
import { activeBackfills, type BackfillRow } from '../../exports/rows/backfills.ts';
import { type BatchExportRow, setSeam } from '../../exports/rows/batch-exports.ts';
import { errors } from '../errors.ts';
import { beginBackfill, wholeRange } from './backfills.ts';
import { keyOf } from './places.ts';

const isLong = ({ interval }: BatchExportRow) => interval === 'day' || interval === 'week';

/** Whether both cut time in the same way. */
function isCutAlike(one: BatchExportRow, other: BatchExportRow): boolean {
  if (one.interval !== other.interval) return false;
  return !isLong(one) || (one.timezone === other.timezone && one.interval_offset === other.interval_offset);
}

/**
 * Sees to it that an export that is cut into other intervals misses nothing and exports nothing twice: they begin where
 * the exported ones end. Those that are over by then are for a backfill, as the schedule does not come back to them.
 */
export async function recut(
  { pool, client }: { pool: Pool; client: Transaction },
  request: FastifyRequest,
  before: BatchExportRow,
  changed: BatchExportRow,
): Promise<{ row: BatchExportRow; backfill?: BackfillRow }> {
  if (isCutAlike(before, changed)) return { row: changed };
  if ((await activeBackfills(client, keyOf(before))).length > 0) {
    throw errors.validation(
      'invalid_input',
      'The intervals of a batch export cannot be changed while a backfill of it is under way. Wait for it, or cancel it.',
      'interval',
    );
  }
  const now = Date.now();
  const seam = await seamOf(pool, before, now).catch((error) => {
    if (!(error instanceof NoSeamError)) throw error;
    throw errors.validation(
      'invalid_input',
      `The intervals of a batch export cannot be changed now. ${error.message}`,
      'interval',
    );
  });
  const row = (await setSeam(client, keyOf(before), seam)) ?? changed;
  // What a pause left out is for whoever ends the pause.
  if (before.paused || row.paused) return { row };
  const left = wholeRange(row, Date.parse(row.scheduled_from), now);
  if (!left) return { row };
  const { backfill, isNew } = await beginBackfill(client, request, row, left);
  return isNew ? { row, backfill } : { row };
}
