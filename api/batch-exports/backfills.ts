import type { FastifyRequest } from 'fastify';
import type { Transaction } from '../../db/pool.ts';
import { type BackfillRow, insertBackfill } from '../../exports/rows/backfills.ts';
import { type BatchExportRow, lockBatchExport } from '../../exports/rows/batch-exports.ts';
import { cadenceOfRow } from '../../exports/rules/cadence.ts';
import {
  alignOutward,
  BackfillRangeError,
  countWithin,
  intervalAt,
  type OpenInterval,
  readBackfillRange,
} from '../../intervals/index.ts';
import { backfillWorkflowId } from '../../schedules/exports/backfills.ts';
import { audit } from '../../tenancy/audit.ts';
import { actorOf } from '../actor.ts';
import { errors } from '../errors.ts';
import { keyOf, placeOf } from './places.ts';

/** Backfills that a project may have under way at once. */
export const MOST_BACKFILLS = 10;
const RETRY_SECONDS = 60;
/** These may be asked to fill up to now, whenever that is. */
const OPEN_ENDED = new Set(['HTTP', 'NoOp']);

/** The whole intervals that a client asks to be filled, as far as they are over. */
export function readRange(
  row: BatchExportRow,
  body: { start_at?: unknown; end_at?: unknown },
  now: number,
): OpenInterval {
  const cadence = cadenceOfRow(row);
  try {
    const openEnd = OPEN_ENDED.has(row.destination_type);
    const { start, end } = readBackfillRange(cadence, body, { now, openEnd });
    const over = intervalAt(cadence, now).start;
    if (start === null) throw new Error('a range without a beginning was let through');
    const range = alignOutward(cadence, { start, end: end ?? over });
    return requireIntervals({ start: range.start, end: Math.min(range.end, over) });
  } catch (error) {
    if (!(error instanceof BackfillRangeError)) throw error;
    throw errors.validation('invalid_input', error.message, error.field);
  }
}

function requireIntervals(range: { start: number; end: number }): OpenInterval {
  if (range.start < range.end) return range;
  throw errors.validation('invalid_input', 'No interval of this range is over yet.', 'end_at');
}

/**
 * The intervals that ended since, from the one that an instant lies in: of what the schedule runs, so nothing that ends
 * before its start or after its end. Null: there is none.
 */
export function wholeRange(row: BatchExportRow, since: number, now: number): OpenInterval | null {
  const cadence = cadenceOfRow(row);
  const { start } = intervalAt(cadence, Math.max(since, row.start_at ? Date.parse(row.start_at) - 1 : since));
  const { start: end } = intervalAt(cadence, row.end_at ? Math.min(now, Date.parse(row.end_at)) : now);
  return start < end ? { start, end } : null;
}

const text = (instant: number) => new Date(instant).toISOString();
/** The row of a backfill, in the transaction of the caller; the same range that is being filled already is answered as it is. */
export async function beginBackfill(
  client: Transaction,
  request: FastifyRequest,
  row: BatchExportRow,
  range: OpenInterval,
): Promise<{ backfill: BackfillRow; isNew: boolean }> {
  // Nobody deletes it meanwhile: whoever does then finds this backfill, and cancels it.
  if (!(await lockBatchExport(client, keyOf(row)))) throw errors.notFound('BatchExport not found.');
  const start = range.start === null ? null : text(range.start);
  const end = text(range.end);
  const started = await insertBackfill(
    client,
    {
      ...keyOf(row),
      workflowId: backfillWorkflowId(row.id, { start, end }),
      start,
      end,
      totalRuns:
        range.start === null ? 1 : countWithin(cadenceOfRow(row), { start: range.start, end: range.end }),
    },
    MOST_BACKFILLS,
  );
  if (started.outcome === 'too_many') {
    throw errors.tooMany(
      `This team already has ${started.active} batch export backfills running. Wait for some to finish or cancel them ` +
        'before creating more.',
      RETRY_SECONDS,
    );
  }
  const { backfill } = started;
  if (started.outcome === 'started') {
    await audit(client, actorOf(request), {
      scope: 'BatchExport',
      itemId: row.id,
      activity: 'backfilled',
      ...placeOf(request, row.project_id),
      detail: { backfill: backfill.id, start_at: backfill.start_at, end_at: backfill.end_at },
    });
  }
  return { backfill, isNew: started.outcome === 'started' };
}
