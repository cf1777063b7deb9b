import { Context } from '@temporalio/activity';
import { type CheckRow, clearMissing, noteRepair, recordCheck } from '../../db/batch-export-checks.ts';
import { saveHealth } from '../../db/batch-export-health.ts';
import { insertLogs } from '../../db/batch-export-logs.ts';
import { type BatchExportRow, pageBatchExports } from '../../db/batch-exports.ts';
import { patienceOf } from '../../exports/due.ts';
import { healthOf, knownOf, recentWindow } from '../../exports/health.ts';
import { type IntervalEntry, intervalKey, intervalStates } from '../../exports/interval-states.ts';
import { isToBeRepaired } from '../../exports/repair.ts';
import type { NoticeInput } from '../../workflows/names.ts';
import type { ActivityDependencies } from '../dependencies.ts';

/** So many intervals of one export are started again at once: the next pass goes on. */
const REPAIRS_PER_EXPORT = 10;
/** And so many of all exports of a page: what everybody missed does not come to the workers all at once. */
const REPAIRS_PER_PAGE = 100;
/** An export that is so many intervals behind is told of. */
const LAGS = 2;

export interface ReconciledPage {
  /** The last export that was looked at; null: there are no more. */
  next: string | null;
  exports: number;
  missing: number;
  late: number;
  differs: number;
  repaired: number;
  /** Exports that could not be looked at; the log says why. */
  failed: number;
  notices: NoticeInput[];
}

type Reconciled = Omit<ReconciledPage, 'next' | 'exports' | 'failed'>;

/** Looks at the intervals of the last days of each export: finds those that are missing, and starts them again. */
export function createReconcileExports({
  pool,
  schedules: { exports: temporal },
  logger,
  exportRepair,
}: Pick<ActivityDependencies, 'pool' | 'schedules' | 'logger' | 'exportRepair'>) {
  /** What the schedule started may not have come to a worker yet. */
  async function isUnderWay(row: BatchExportRow, { end }: IntervalEntry): Promise<boolean> {
    return (await temporal.fateOfScheduledRun(row.id, end)) === 'running';
  }

  async function repair(
    row: BatchExportRow,
    entries: readonly IntervalEntry[],
    checks: ReadonlyMap<string, CheckRow>,
    most: number,
    now: number,
  ): Promise<IntervalEntry[]> {
    if (!exportRepair || row.paused) return [];
    const key = { projectId: row.project_id, exportId: row.id };
    const lastDone = entries.findLastIndex((one) => one.state === 'done' || one.state === 'differs');
    const repaired: IntervalEntry[] = [];
    for (const [index, entry] of entries.entries()) {
      if (repaired.length >= most) break;
      const before = checks.get(intervalKey(entry.start, entry.end)) ?? { repairs: 0, repaired_at: null };
      if (!isToBeRepaired(entry, before, index < lastDone, now)) continue;
      if (await isUnderWay(row, entry)) continue;
      // Noted first: a pass that is killed in between tries again later rather than twice at once.
      if (!(await noteRepair(pool, key, entry, before.repairs))) continue;
      await temporal.startRun(row, { start: entry.start, end: entry.end });
      repaired.push(entry);
    }
    return repaired;
  }

  async function reconcile(row: BatchExportRow, most: number): Promise<Reconciled> {
    const key = { projectId: row.project_id, exportId: row.id };
    const now = Date.now();
    const window = recentWindow(row, now);
    const known = await knownOf(pool, row, window);
    const entries = intervalStates(row, known, window, now);
    const checks = new Map(
      known.checks.map((one) => [intervalKey(one.data_interval_start, one.data_interval_end), one]),
    );
    const found: IntervalEntry[] = [];
    for (const entry of entries) {
      if (entry.state !== 'missing') continue;
      if (!checks.has(intervalKey(entry.start, entry.end)) && (await isUnderWay(row, entry))) {
        entry.state = 'late';
        continue;
      }
      const check = { start: entry.start, end: entry.end, state: 'missing' as const, problem: entry.problem };
      const none = { runId: null, sourceRows: null, contentHash: null };
      if (await recordCheck(pool, key, { ...check, ...none })) found.push(entry);
    }
    const settled = entries.filter((one) => one.state === 'done' || one.state === 'excluded');
    await clearMissing(
      pool,
      key,
      settled.map((one) => one.end),
    );
    const repaired = await repair(row, entries, checks, most, now);
    const messages = found.map(({ start, end, problem }) => ({
      level: 'WARNING' as const,
      message: `The interval ${start} - ${end} is missing: ${problem}`,
    }));
    messages.push(
      ...repaired.map(({ start, end }) => ({
        level: 'WARNING' as const,
        message: `The interval ${start} - ${end} is missing and was started again`,
      })),
    );
    await insertLogs(pool, key, null, messages);
    const health = healthOf(entries);
    const before = await saveHealth(pool, key, health);
    const notices: NoticeInput[] = [];
    const notice = (event: NoticeInput['event'], details: NoticeInput['details']) =>
      notices.push({
        event,
        projectId: row.project_id,
        exportId: row.id,
        at: new Date(now).toISOString(),
        details,
      });
    if (found.length > 0) {
      notice('batch_export.missing', {
        intervals: found.length,
        first: found[0]?.start ?? null,
        last: found.at(-1)?.end ?? null,
        started_again: repaired.length,
      });
    }
    if (health.lag_intervals > LAGS && (before?.lag_intervals ?? 0) <= LAGS) {
      notice('batch_export.lagging', {
        intervals: health.lag_intervals,
        seconds: health.lag_seconds,
        lookback_seconds: patienceOf(row).lookback / 1000,
      });
    }
    const { missing, late, differs } = health;
    return { missing, late, differs, repaired: repaired.length, notices };
  }

  return async function reconcilePage(input: {
    after: string | null;
    limit: number;
  }): Promise<ReconciledPage> {
    const rows = await pageBatchExports(pool, input.after, input.limit);
    const page: ReconciledPage = {
      next: rows.length === input.limit ? (rows.at(-1) as BatchExportRow).id : null,
      exports: rows.length,
      ...{ missing: 0, late: 0, differs: 0, repaired: 0, failed: 0 },
      notices: [],
    };
    for (const row of rows) {
      Context.current().heartbeat(row.id);
      try {
        const one = await reconcile(row, Math.min(REPAIRS_PER_EXPORT, REPAIRS_PER_PAGE - page.repaired));
        for (const count of ['missing', 'late', 'differs', 'repaired'] as const) page[count] += one[count];
        page.notices.push(...one.notices);
      } catch (error) {
        // One that is not as it should be keeps none of the others from it. If it is all of them, it is something else.
        page.failed += 1;
        if (page.failed === rows.length) throw error;
        logger.warn({ err: error, exportId: row.id }, 'a batch export could not be reconciled');
      }
    }
    return page;
  };
}
