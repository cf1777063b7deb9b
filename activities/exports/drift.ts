import { Context } from '@temporalio/activity';
import { isUuid } from '../../db/uuid.ts';
import {
  type BackfillRow,
  type BackfillStatus,
  listActiveBackfills,
  markBackfillEnded,
} from '../../exports/rows/backfills.ts';
import {
  type BatchExportRow,
  findBatchExportById,
  pageBatchExports,
} from '../../exports/rows/batch-exports.ts';
import { insertLogs } from '../../exports/rows/logs.ts';
import { listQuietRuns } from '../../exports/rows/run-lists.ts';
import { markRunEnded, type RunFailure, type RunRow } from '../../exports/rows/runs.ts';
import type { ListedSchedule, WorkflowFate } from '../../exports/temporal.ts';
import { syncRow } from '../../schedules/exports/sync-row.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { countEach } from './each.ts';

const PAGE = 500;
/** So many schedules are looked at closely each minute, in turns; the list shows the others' most likely faults. */
const CLOSELY_PER_RUN = 200;
const AT_ONCE = 5;
const ORPHANS_PER_RUN = 1_000;
/** Whoever has just made a row is about to start its workflow. */
const GRACE = 60_000;

/** Which of the turns an export is looked at closely in: they follow each other by the minute. */
export function isItsTurn(exportId: string, exports: number, now: number): boolean {
  const turns = Math.max(1, Math.ceil(exports / CLOSELY_PER_RUN));
  const number = Number.parseInt(exportId.slice(-6), 16);
  return number % turns === Math.floor(now / 60_000) % turns;
}

const RUN_ENDS: Record<Exclude<WorkflowFate, 'running'>, [status: RunFailure, text: string]> = {
  completed: ['Failed', 'Its workflow ended in Temporal without saying what came of the run.'],
  failed: ['Failed', 'Its workflow failed in Temporal.'],
  cancelled: ['Cancelled', 'Its workflow was cancelled in Temporal.'],
  terminated: ['Terminated', 'Its workflow was terminated in Temporal.'],
  'timed-out': ['TimedOut', 'Its workflow timed out in Temporal.'],
  unknown: ['Terminated', 'Temporal knows nothing of its workflow any more.'],
};

export function createExportDriftActivities({
  pool,
  schedules: { exports: temporal },
  logger,
}: Pick<ActivityDependencies, 'pool' | 'schedules' | 'logger'>) {
  /** A row of which no schedule can be made counts as wrong: `sync` then says why, without holding up the others. */
  function looksRight(row: BatchExportRow, listed: ListedSchedule): boolean {
    try {
      return listed.matches(row);
    } catch {
      return false;
    }
  }

  async function endOrphan(run: RunRow): Promise<boolean> {
    Context.current().heartbeat();
    const fate = await temporal.fateOfRun(run);
    if (fate === 'running') return false;
    const [status, text] = RUN_ENDS[fate];
    if (!(await markRunEnded(pool, { projectId: run.project_id, runId: run.id }, status, text))) return false;
    const key = { projectId: run.project_id, exportId: run.batch_export_id };
    const message = `The run of the interval that ends at ${run.data_interval_end} is over. ${text}`;
    await insertLogs(pool, key, run.id, [{ level: status === 'Cancelled' ? 'WARNING' : 'ERROR', message }]);
    return true;
  }

  async function mendBackfill(backfill: BackfillRow): Promise<boolean> {
    Context.current().heartbeat();
    const fate = await temporal.fateOfBackfill(backfill);
    if (fate === 'running') return false;
    const key = { projectId: backfill.project_id, backfillId: backfill.id };
    const row = await findBatchExportById(pool, backfill.batch_export_id);
    if (!row || row.deleted_at !== null)
      return markBackfillEnded(pool, key, 'Cancelled', 'The batch export was deleted.');
    if (fate === 'unknown') {
      // Whoever made the row was killed before starting it, or Temporal lost its data: it goes on where it was.
      await temporal.startBackfill(row, backfill);
      return true;
    }
    const [status, text] = RUN_ENDS[fate];
    return markBackfillEnded(pool, key, status as Exclude<BackfillStatus, 'Starting' | 'Running'>, text);
  }

  return {
    /** Schedule = row, whatever happened to either: missing, left over, paused, changed. Answers how many were not. */
    async repairExportSchedules(): Promise<number> {
      const listed = await temporal.list();
      const [now, exports] = [Date.now(), listed.size];
      const doubtful: string[] = [];
      let after: string | null = null;
      do {
        const rows: BatchExportRow[] = await pageBatchExports(pool, after, PAGE);
        for (const row of rows) {
          Context.current().heartbeat();
          const found = listed.get(row.id);
          listed.delete(row.id);
          const right = found !== undefined && looksRight(row, found);
          if (!right || isItsTurn(row.id, exports, now)) doubtful.push(row.id);
        }
        after = rows.length === PAGE ? (rows.at(-1) as BatchExportRow).id : null;
      } while (after !== null);
      const repair = async (exportId: string) => {
        Context.current().heartbeat();
        if (!(await syncRow(pool, temporal, exportId))) return false;
        logger.info({ exportId }, 'the schedule of a batch export was not what it should be');
        return true;
      };
      const remove = async (exportId: string) =>
        // Somebody else's may be called anything.
        isUuid(exportId) && (await temporal.isOwn(exportId)) && (await repair(exportId));
      const repaired = await countEach(doubtful, AT_ONCE, repair);
      return repaired + (await countEach([...listed.keys()], AT_ONCE, remove));
    },

    /** Ends runs that nobody works on, so that their intervals are free again. */
    async endOrphanedRuns(): Promise<number> {
      const quiet = new Date(Date.now() - GRACE).toISOString();
      return countEach(await listQuietRuns(pool, quiet, ORPHANS_PER_RUN), AT_ONCE, endOrphan);
    },

    /** Starts backfills that nobody started, and ends those whose workflow ended without saying so. */
    async mendBackfills(): Promise<number> {
      const begun = new Date(Date.now() - GRACE).toISOString();
      return countEach(await listActiveBackfills(pool, begun, ORPHANS_PER_RUN), AT_ONCE, mendBackfill);
    },
  };
}
