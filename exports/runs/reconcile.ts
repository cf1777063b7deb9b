import { type Pool, transaction } from '../../db/pool.ts';
import type { IntervalText } from '../../intervals/index.ts';
import { instantText } from '../../values/dates.ts';
import { healthOf, knownOf, recentWindow } from '../reads/health.ts';
import {
  type BatchExportRow,
  type ExportKey,
  keyOf,
  listPausesOfEach,
  pageBatchExports,
} from '../rows/batch-exports.ts';
import {
  type CheckRow,
  clearMissing,
  findOpenChecks,
  listDamaged,
  noteRepair,
  recordChecks,
} from '../rows/checks.ts';
import { findHealth, type Health, saveHealth } from '../rows/health.ts';
import { insertLogs } from '../rows/logs.ts';
import { markIntervals } from '../rows/run-lists.ts';
import { upkeepTimesOf } from '../rules/due.ts';
import { type IntervalEntry, intervalKey, intervalStates } from '../rules/interval-states.ts';
import { isDamageToBeRepaired, isToBeRepaired } from '../rules/repair.ts';
import { settledAt } from '../rules/settled.ts';
import type { NoticeInput } from '../temporal.ts';
import type { RunDependencies } from './dependencies.ts';
import type { Work } from './work.ts';

/** How many intervals of one export are started again in one pass. The next pass continues. */
const REPAIRS_PER_EXPORT = 10;
/** How many intervals of all exports of a page are started again, so that workers do not get all of them at once. */
const REPAIRS_PER_PAGE = 100;
/** Of an export that needs no closer look. */
const WELL: Health = { missing: 0, late: 0, differs: 0, lag_intervals: 0, lag_seconds: 0 };
/** An export that is more than this number of intervals behind causes a notice. */
const LAGS = 2;

export type ReconcileDependencies = Pick<
  RunDependencies,
  'pool' | 'temporal' | 'logger' | 'repair' | 'noticeWebhook'
>;

export interface ReconcilePageInput {
  after: string | null;
  limit: number;
}

export interface ReconciledPage {
  /** The last export that was checked. Null: there are no more. */
  next: string | null;
  exports: number;
  missing: number;
  late: number;
  differs: number;
  repaired: number;
  /** The number of exports that could not be checked. The log says why. */
  failed: number;
  /** Always empty, because notices are sent before this result. Workflows of an older version read it. */
  notices: [];
}

/** Checks the recent intervals of each export of a page: finds those that are missing, and starts them again. */
export async function reconcilePage(
  deps: ReconcileDependencies,
  { after, limit }: ReconcilePageInput,
  { beat }: Pick<Work, 'beat'>,
): Promise<ReconciledPage> {
  const rows = await pageBatchExports(deps.pool, after, limit, { scheduled: true });
  const doubtful = await findDoubtful(deps.pool, rows, Date.now());
  const page: ReconciledPage = {
    next: rows.length === limit ? (rows.at(-1) as BatchExportRow).id : null,
    exports: rows.length,
    ...{ missing: 0, late: 0, differs: 0, repaired: 0, failed: 0 },
    notices: [],
  };
  await saveHealth(
    deps.pool,
    rows.filter((row) => !doubtful.has(row)).map((row) => ({ ...keyOf(row), health: WELL })),
  );
  for (const row of doubtful) {
    beat(row.id);
    try {
      const { health, repaired } = await reconcile(
        deps,
        row,
        Math.min(REPAIRS_PER_EXPORT, REPAIRS_PER_PAGE - page.repaired),
      );
      for (const count of ['missing', 'late', 'differs'] as const) page[count] += health[count];
      page.repaired += repaired;
    } catch (error) {
      // One export that fails does not hold up the others. If all fail, something else is wrong.
      page.failed += 1;
      if (page.failed === rows.length) throw error;
      deps.logger.warn({ err: error, exportId: row.id }, 'a batch export could not be reconciled');
    }
  }
  return page;
}

/** Finds the exports that need a closer look, with a few statements for all. As a rule there are few. */
async function findDoubtful(
  pool: Pool,
  rows: readonly BatchExportRow[],
  now: number,
): Promise<ReadonlySet<BatchExportRow>> {
  const wanted = rows.map((row) => ({
    ...keyOf(row),
    after: new Date(recentWindow(row, now).start).toISOString(),
  }));
  const open = await findOpenChecks(pool, wanted);
  const pauses = await listPausesOfEach(pool, wanted);
  const marks = await markIntervals(pool, wanted, new Date(now).toISOString());
  const isSettled = settledAt(now);
  const isDoubtful = (row: BatchExportRow) => {
    const found = marks.get(row.id);
    if (open.has(row.id) || !found) return true;
    try {
      return !isSettled(row, { marks: found, pauses: pauses.get(row.id) ?? [] });
    } catch {
      // Its intervals cannot be computed. The closer look says why.
      return true;
    }
  };
  return new Set(rows.filter(isDoubtful));
}
type Checks = ReadonlyMap<string, CheckRow>;

/** Looks closely at one export. Returns how complete it is, and how many intervals were started again. */
async function reconcile(
  deps: ReconcileDependencies,
  row: BatchExportRow,
  most: number,
): Promise<{ health: Health; repaired: number }> {
  const { pool } = deps;
  const key = keyOf(row);
  const now = Date.now();
  const window = recentWindow(row, now);
  const known = await knownOf(pool, row, window);
  const entries = intervalStates(row, known, window, now);
  const checks: Checks = new Map(
    known.checks.map((one) => [intervalKey(one.data_interval_start, one.data_interval_end), one]),
  );
  const found = await newlyMissing(deps, row, entries, checks);
  const chosen = await toBeRepaired(deps, row, entries, checks, most, now);
  const [first, last] = [found[0], found.at(-1)];
  if (first && last) {
    await tell(deps, row, 'batch_export.missing', `${instantText(first.start)}-${instantText(last.end)}`, {
      intervals: found.length,
      first: first.start,
      last: last.end,
      started_again: chosen.length,
    });
  }
  const missing = entries.filter((one) => one.state === 'missing');
  const settled = new Set(
    entries
      .filter((one) => one.state === 'done' || one.state === 'excluded')
      .map((one) => intervalKey(one.start, one.end)),
  );
  const cleared = known.checks.filter(
    (one) =>
      one.state === 'missing' &&
      one.run_id === null &&
      settled.has(intervalKey(one.data_interval_start, one.data_interval_end)),
  );
  if (missing.length > 0 || cleared.length > 0) {
    await transaction(pool, async (client) => {
      const none = { runId: null, sourceRows: null, contentHash: null };
      await recordChecks(
        client,
        missing.map(({ start, end, problem }) => ({
          ...key,
          start,
          end,
          state: 'missing',
          problem,
          ...none,
        })),
      );
      await insertLogs(
        client,
        key,
        null,
        warnings(found, ({ problem }) => `is missing: ${problem}`),
      );
      await clearMissing(
        client,
        key,
        cleared.map((one) => one.data_interval_end),
      );
    });
  }
  const repaired =
    (await repair(deps, row, chosen, checks)) + (await repairDamaged(deps, row, most - chosen.length, now));
  const health = healthOf(entries);
  if (health.lag_intervals > LAGS && !(await wasLagging(deps, key))) {
    const end = Date.parse((entries.at(-1) as IntervalEntry).end);
    await tell(deps, row, 'batch_export.lagging', instantText(end - health.lag_seconds * 1000), {
      intervals: health.lag_intervals,
      seconds: health.lag_seconds,
      lookback_seconds: upkeepTimesOf(row).lookback / 1000,
    });
  }
  await saveHealth(pool, [{ ...key, health }]);
  return { health, repaired };
}

/** Finds the intervals that are missing and were not before. An interval whose run is still waiting becomes `late`. */
async function newlyMissing(
  deps: ReconcileDependencies,
  row: BatchExportRow,
  entries: readonly IntervalEntry[],
  checks: Checks,
): Promise<IntervalEntry[]> {
  const found: IntervalEntry[] = [];
  for (const entry of entries) {
    if (entry.state !== 'missing') continue;
    const check = checks.get(intervalKey(entry.start, entry.end));
    if (!check && (await isUnderWay(deps, row, entry))) entry.state = 'late';
    else if (check?.state !== 'missing') found.push(entry);
  }
  return found;
}

/** Answers whether the run that the schedule started is in progress. It may not have reached a worker yet. */
async function isUnderWay(
  { temporal }: ReconcileDependencies,
  row: BatchExportRow,
  { end }: IntervalEntry,
): Promise<boolean> {
  return (await temporal.fateOfScheduledRun(row.id, end)) === 'running';
}

const repairsOf = (checks: Checks, { start, end }: IntervalEntry) =>
  checks.get(intervalKey(start, end)) ?? { repairs: 0, repaired_at: null };

async function toBeRepaired(
  deps: ReconcileDependencies,
  row: BatchExportRow,
  entries: readonly IntervalEntry[],
  checks: Checks,
  most: number,
  now: number,
): Promise<IntervalEntry[]> {
  if (!deps.repair || row.paused) return [];
  const lastDone = entries.findLastIndex((one) => one.state === 'done' || one.state === 'differs');
  const chosen: IntervalEntry[] = [];
  for (const [index, entry] of entries.entries()) {
    if (chosen.length >= most) break;
    if (!isToBeRepaired(entry, repairsOf(checks, entry), index < lastDone, now)) continue;
    if (!(await isUnderWay(deps, row, entry))) chosen.push(entry);
  }
  return chosen;
}

async function repair(
  { pool, temporal }: ReconcileDependencies,
  row: BatchExportRow,
  chosen: readonly IntervalEntry[],
  checks: Checks,
): Promise<number> {
  const key = keyOf(row);
  const repaired: IntervalEntry[] = [];
  for (const entry of chosen) {
    // Counted first: if this pass is killed in between, the interval is started again later, and not twice at once.
    if (!(await noteRepair(pool, key, entry, repairsOf(checks, entry).repairs))) continue;
    await temporal.startRun(row, { start: entry.start, end: entry.end }, 'repair');
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

/** Exports intervals again whose files another run damaged. */
async function repairDamaged(
  deps: ReconcileDependencies,
  row: BatchExportRow,
  most: number,
  now: number,
): Promise<number> {
  if (!deps.repair || row.paused || most <= 0) return 0;
  let repaired = 0;
  for (const check of await listDamaged(deps.pool, keyOf(row), most)) {
    if (!isDamageToBeRepaired(check, now)) continue;
    const interval = { start: check.data_interval_start, end: check.data_interval_end };
    if (!(await noteRepair(deps.pool, keyOf(row), interval, check.repairs))) continue;
    await deps.temporal.startRun(row, interval, 'repair');
    await insertLogs(
      deps.pool,
      keyOf(row),
      null,
      warnings([interval], () => 'was damaged and was started again'),
    );
    repaired += 1;
  }
  return repaired;
}

const warnings = <T extends IntervalText>(intervals: readonly T[], what: (interval: T) => string) =>
  intervals.map((one) => ({
    level: 'WARNING' as const,
    message: `The interval ${one.start ?? 'the beginning'} - ${one.end} ${what(one)}`,
  }));

/**
 * Sends a notice. Call it before its cause is written down. If the pass is killed in between, the next one sends the
 * same notice again, and it arrives once.
 */
async function tell(
  { temporal, noticeWebhook }: ReconcileDependencies,
  row: BatchExportRow,
  event: NoticeInput['event'],
  about: string,
  details: NoticeInput['details'],
): Promise<void> {
  if (noticeWebhook === undefined) return;
  const at = new Date().toISOString();
  await temporal.startNotice({ event, ...keyOf(row), at, details }, about);
}

async function wasLagging({ pool }: ReconcileDependencies, key: ExportKey): Promise<boolean> {
  const before = (await findHealth(pool, [key])).get(key.exportId);
  return (before?.lag_intervals ?? 0) > LAGS;
}
