// Maintenance of batch exports, every minute: corrects schedules, ends runs and starts backfills without a workflow,
// and deletes old history. Each function is a step, and returns how many rows or schedules it changed.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { transaction } from '../../db/pool.ts';
import { isUuid } from '../../values/uuid.ts';
import { EXPORT_DELETED, endBackfill, endRun } from '../ending.ts';
import { type BackfillRow, type EndedBackfillStatus, listActiveBackfills } from '../rows/backfills.ts';
import { type BatchExportRow, findBatchExportById, pageBatchExports } from '../rows/batch-exports.ts';
import { deleteOldLogs } from '../rows/logs.ts';
import { RUN_EXPIRIES } from '../rows/retention.ts';
import { listQuietRuns } from '../rows/run-lists.ts';
import type { RunFailure, RunRow } from '../rows/runs.ts';
import { syncRow } from '../sync-row.ts';
import type { ListedSchedule, WorkflowFate } from '../temporal.ts';
import type { RunDependencies } from './dependencies.ts';
import type { Work } from './work.ts';

type UpkeepDependencies = Pick<RunDependencies, 'pool' | 'temporal' | 'logger'>;

/** How many items are worked on at once. */
const AT_ONCE = 5;
const PAGE = 500;
/**
 * How many schedules are compared in full each minute, in turns. For the others, the list shows the most likely faults.
 */
const CLOSELY_PER_RUN = 200;

/** Answers whether it is the turn of an export, in this minute, to have its schedule compared in full. */
export function isItsTurn(exportId: string, exports: number, now: number): boolean {
  const turns = Math.max(1, Math.ceil(exports / CLOSELY_PER_RUN));
  const number = Number.parseInt(exportId.slice(-6), 16);
  return number % turns === Math.floor(now / 60_000) % turns;
}

/** Corrects every schedule that does not agree with its row, because it is missing, left over, paused or changed. */
export async function repairExportSchedules(
  { pool, temporal, logger }: UpkeepDependencies,
  { signal, beat }: Work,
): Promise<number> {
  const listed = await temporal.list();
  const [now, exports] = [Date.now(), listed.size];
  const doubtful: string[] = [];
  let after: string | null = null;
  do {
    const rows: BatchExportRow[] = await pageBatchExports(pool, after, PAGE, { scheduled: true });
    for (const row of rows) {
      // Comparing thousands of schedules takes long, and the worker has other work in between.
      await nextTurn();
      signal.throwIfAborted();
      beat();
      const found = listed.get(row.id);
      listed.delete(row.id);
      const right = found !== undefined && looksRight(row, found);
      if (!right || isItsTurn(row.id, exports, now)) doubtful.push(row.id);
    }
    after = rows.length === PAGE ? (rows.at(-1) as BatchExportRow).id : null;
  } while (after !== null);
  const repair = async (exportId: string) => {
    signal.throwIfAborted();
    beat();
    if (!(await syncRow(pool, temporal, exportId))) return false;
    logger.info({ exportId }, 'the schedule of a batch export was corrected');
    return true;
  };
  const remove = async (exportId: string) =>
    // The schedules of other installations may have any id.
    isUuid(exportId) && (await temporal.isOwn(exportId)) && (await repair(exportId));
  const repaired = await countEach(doubtful, AT_ONCE, repair);
  return repaired + (await countEach([...listed.keys()], AT_ONCE, remove));
}

/**
 * Answers whether a listed schedule agrees with its row. If no schedule can be made of the row, the answer is no:
 * `sync` then reports why, without holding up the others.
 */
function looksRight(row: BatchExportRow, listed: ListedSchedule): boolean {
  try {
    return listed.matches(row);
  } catch {
    return false;
  }
}

const ORPHANS_PER_RUN = 1_000;
/** How old a row must be, in milliseconds. Before that, whoever made it may still start its workflow. */
const GRACE = 60_000;

interface Ending {
  status: RunFailure & EndedBackfillStatus;
  reason: string;
}

const ENDS: Record<Exclude<WorkflowFate, 'running'>, Ending> = {
  completed: {
    status: 'Failed',
    reason: 'Its workflow ended in Temporal without a result.',
  },
  failed: { status: 'Failed', reason: 'Its workflow failed in Temporal.' },
  cancelled: { status: 'Cancelled', reason: 'Its workflow was cancelled in Temporal.' },
  terminated: { status: 'Terminated', reason: 'Its workflow was terminated in Temporal.' },
  'timed-out': { status: 'TimedOut', reason: 'Its workflow timed out in Temporal.' },
  unknown: { status: 'Terminated', reason: 'Its workflow does not exist in Temporal any more.' },
};

/** Ends runs that have lost their workflow, so that their intervals can be exported again. */
export async function endOrphanedRuns(
  { pool, temporal }: Pick<UpkeepDependencies, 'pool' | 'temporal'>,
  { signal, beat }: Work,
): Promise<number> {
  const end = async (run: RunRow): Promise<boolean> => {
    signal.throwIfAborted();
    beat();
    const fate = await temporal.fateOfRun(run);
    if (fate === 'running') return false;
    const { status, reason } = ENDS[fate];
    const message = `The run of the interval that ends at ${run.data_interval_end} has ended. ${reason}`;
    const log = { level: status === 'Cancelled' ? 'WARNING' : 'ERROR', message } as const;
    const ended = await transaction(pool, (client) => endRun(client, run, { status, reason, log }));
    return ended !== undefined;
  };
  const quiet = new Date(Date.now() - GRACE).toISOString();
  return countEach(await listQuietRuns(pool, quiet, ORPHANS_PER_RUN), AT_ONCE, end);
}

/** Starts backfills that have no workflow, and ends those whose workflow ended without a result. */
export async function mendBackfills(
  { pool, temporal }: Pick<UpkeepDependencies, 'pool' | 'temporal'>,
  { signal, beat }: Work,
): Promise<number> {
  const mend = async (backfill: BackfillRow): Promise<boolean> => {
    signal.throwIfAborted();
    beat();
    const fate = await temporal.fateOfBackfill(backfill);
    if (fate === 'running') return false;
    const row = await findBatchExportById(pool, backfill.batch_export_id);
    const isDeleted = !row || row.deleted_at !== null;
    if (!isDeleted && fate === 'unknown') {
      // Whoever made the row was killed before starting the workflow, or Temporal lost its data. The new workflow
      // continues after the intervals that are completed.
      await temporal.startBackfill(row, backfill);
      return true;
    }
    const ending = isDeleted ? EXPORT_DELETED : ENDS[fate];
    const ended = await transaction(pool, (client) => endBackfill(client, backfill, ending));
    return ended !== undefined;
  };
  const begun = new Date(Date.now() - GRACE).toISOString();
  return countEach(await listActiveBackfills(pool, begun, ORPHANS_PER_RUN), AT_ONCE, mend);
}

const ROWS_PER_STATEMENT = 5_000;
const ROWS_PER_RUN = 200_000;
const DAY = 86_400_000;

/** Deletes logs, runs and what belongs to runs when they are older than they are kept, in small statements. */
export async function expireExportHistory(
  { pool, logDays, runDays }: Pick<RunDependencies, 'pool' | 'logDays' | 'runDays'>,
  { signal, beat }: Work,
): Promise<number> {
  const before = (days: number) => new Date(Date.now() - days * DAY).toISOString();
  const steps = [
    () => deleteOldLogs(pool, before(logDays), ROWS_PER_STATEMENT),
    ...RUN_EXPIRIES.map((expire) => () => expire(pool, before(runDays), ROWS_PER_STATEMENT)),
  ];
  let deleted = 0;
  for (const step of steps) {
    for (;;) {
      signal.throwIfAborted();
      beat(deleted);
      const some = await step();
      deleted += some;
      if (deleted >= ROWS_PER_RUN) return deleted;
      if (some < ROWS_PER_STATEMENT) break;
    }
  }
  return deleted;
}

/**
 * Calls `work` for each item, a few at once, and counts how many calls return true. A failure does not hold up the
 * other items. The first failure is thrown at the end.
 */
async function countEach<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<boolean>,
): Promise<number> {
  let count = 0;
  const failures: unknown[] = [];
  for (let from = 0; from < items.length; from += atOnce) {
    const settled = await Promise.allSettled(items.slice(from, from + atOnce).map(work));
    for (const one of settled) {
      if (one.status === 'rejected') failures.push(one.reason);
      else if (one.value) count += 1;
    }
  }
  if (failures.length > 0) throw failures[0];
  return count;
}
