import { Context } from '@temporalio/activity';
import { transaction } from '../../db/pool.ts';
import { healthOf, knownOf, recentWindow } from '../../exports/reads/health.ts';
import { type BatchExportRow, type ExportKey, pageBatchExports } from '../../exports/rows/batch-exports.ts';
import { type CheckRow, clearMissing, noteRepair, recordCheck } from '../../exports/rows/checks.ts';
import { findHealth, saveHealth } from '../../exports/rows/health.ts';
import { insertLogs } from '../../exports/rows/logs.ts';
import { patienceOf } from '../../exports/rules/due.ts';
import { type IntervalEntry, intervalKey, intervalStates } from '../../exports/rules/interval-states.ts';
import { isToBeRepaired } from '../../exports/rules/repair.ts';
import type { NoticeInput } from '../../exports/temporal.ts';
import { instantText } from '../../values/dates.ts';
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
  /** Workers of an older version told of these; now they are told of before the page is answered. */
  notices: NoticeInput[];
}

type Reconciled = Omit<ReconciledPage, 'next' | 'exports' | 'failed' | 'notices'>;
type Checks = ReadonlyMap<string, CheckRow>;

const repairsOf = (checks: Checks, { start, end }: IntervalEntry) =>
  checks.get(intervalKey(start, end)) ?? { repairs: 0, repaired_at: null };

const warnings = (entries: readonly IntervalEntry[], what: (entry: IntervalEntry) => string) =>
  entries.map((one) => ({
    level: 'WARNING' as const,
    message: `The interval ${one.start} - ${one.end} ${what(one)}`,
  }));

/** Looks at the intervals of the last days of each export: finds those that are missing, and starts them again. */
export function createReconcileExports({
  pool,
  schedules: { exports: temporal },
  logger,
  exportRepair,
  exports: { noticeWebhook },
}: ActivityDependencies) {
  /** What the schedule started may not have come to a worker yet. */
  async function isUnderWay(row: BatchExportRow, { end }: IntervalEntry): Promise<boolean> {
    return (await temporal.fateOfScheduledRun(row.id, end)) === 'running';
  }

  async function toBeRepaired(
    row: BatchExportRow,
    entries: readonly IntervalEntry[],
    checks: Checks,
    most: number,
    now: number,
  ): Promise<IntervalEntry[]> {
    if (!exportRepair || row.paused) return [];
    const lastDone = entries.findLastIndex((one) => one.state === 'done' || one.state === 'differs');
    const chosen: IntervalEntry[] = [];
    for (const [index, entry] of entries.entries()) {
      if (chosen.length >= most) break;
      if (!isToBeRepaired(entry, repairsOf(checks, entry), index < lastDone, now)) continue;
      if (!(await isUnderWay(row, entry))) chosen.push(entry);
    }
    return chosen;
  }

  async function repair(row: BatchExportRow, chosen: readonly IntervalEntry[], checks: Checks) {
    const key = { projectId: row.project_id, exportId: row.id };
    const repaired: IntervalEntry[] = [];
    for (const entry of chosen) {
      // Noted first: a pass that is killed in between tries again later rather than twice at once.
      if (!(await noteRepair(pool, key, entry, repairsOf(checks, entry).repairs))) continue;
      await temporal.startRun(row, { start: entry.start, end: entry.end });
      repaired.push(entry);
    }
    await insertLogs(
      pool,
      key,
      null,
      warnings(repaired, () => 'is missing and was started again'),
    );
    return repaired.length;
  }

  /** The intervals of which nobody knows yet that they are missing. */
  async function newlyMissing(
    row: BatchExportRow,
    entries: readonly IntervalEntry[],
    checks: Checks,
  ): Promise<IntervalEntry[]> {
    const found: IntervalEntry[] = [];
    for (const entry of entries) {
      if (entry.state !== 'missing') continue;
      const check = checks.get(intervalKey(entry.start, entry.end));
      if (!check && (await isUnderWay(row, entry))) entry.state = 'late';
      else if (check?.state !== 'missing') found.push(entry);
    }
    return found;
  }

  /** What follows from it is written down afterwards: a pass that is killed in between tells of the same again, as one notice. */
  async function tell(
    row: BatchExportRow,
    event: NoticeInput['event'],
    about: string,
    details: NoticeInput['details'],
  ): Promise<void> {
    if (noticeWebhook === undefined) return;
    const at = new Date().toISOString();
    await temporal.startNotice({ event, projectId: row.project_id, exportId: row.id, at, details }, about);
  }

  async function wasLagging(key: ExportKey): Promise<boolean> {
    const before = (await findHealth(pool, [key])).get(key.exportId);
    return (before?.lag_intervals ?? 0) > LAGS;
  }

  async function reconcile(row: BatchExportRow, most: number): Promise<Reconciled> {
    const key = { projectId: row.project_id, exportId: row.id };
    const now = Date.now();
    const window = recentWindow(row, now);
    const known = await knownOf(pool, row, window);
    const entries = intervalStates(row, known, window, now);
    const checks: Checks = new Map(
      known.checks.map((one) => [intervalKey(one.data_interval_start, one.data_interval_end), one]),
    );
    const found = await newlyMissing(row, entries, checks);
    const chosen = await toBeRepaired(row, entries, checks, most, now);
    const [first, last] = [found[0], found.at(-1)];
    if (first && last) {
      await tell(row, 'batch_export.missing', `${instantText(first.start)}-${instantText(last.end)}`, {
        intervals: found.length,
        first: first.start,
        last: last.end,
        started_again: chosen.length,
      });
    }
    await transaction(pool, async (client) => {
      const none = { runId: null, sourceRows: null, contentHash: null };
      for (const { start, end, problem } of entries.filter((one) => one.state === 'missing'))
        await recordCheck(client, key, { start, end, state: 'missing', problem, ...none });
      await insertLogs(
        client,
        key,
        null,
        warnings(found, ({ problem }) => `is missing: ${problem}`),
      );
      const settled = entries.filter((one) => one.state === 'done' || one.state === 'excluded');
      await clearMissing(
        client,
        key,
        settled.map((one) => one.end),
      );
    });
    const repaired = await repair(row, chosen, checks);
    const health = healthOf(entries);
    if (health.lag_intervals > LAGS && !(await wasLagging(key))) {
      const end = Date.parse((entries.at(-1) as IntervalEntry).end);
      await tell(row, 'batch_export.lagging', instantText(end - health.lag_seconds * 1000), {
        intervals: health.lag_intervals,
        seconds: health.lag_seconds,
        lookback_seconds: patienceOf(row).lookback / 1000,
      });
    }
    await saveHealth(pool, key, health);
    const { missing, late, differs } = health;
    return { missing, late, differs, repaired };
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
