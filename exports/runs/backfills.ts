import { transaction } from '../../db/pool.ts';
import { type IntervalText, intervalsWithin, intervalText, rangeText } from '../../intervals/index.ts';
import { estimate, ModelError, modelOf, WHOLE_QUERY } from '../../models/index.ts';
import { endBackfill } from '../ending.ts';
import { exportQuery } from '../reads/query.ts';
import {
  type BackfillKey,
  type BackfillRow,
  completedByBackfill,
  findBackfill,
  runBackfill,
} from '../rows/backfills.ts';
import { type BatchExportRow, findBatchExportById, keyOf } from '../rows/batch-exports.ts';
import { firstDataWithin } from '../rows/first-data.ts';
import { insertLogs } from '../rows/logs.ts';
import { type BackfillPlan, planBackfill, raisedStart } from '../rules/backfill-plan.ts';
import { cadenceOfRow } from '../rules/cadence.ts';
import { isOnce } from '../rules/once.ts';
import type { RunDependencies } from './dependencies.ts';
import { type Work, whileBeating } from './work.ts';

export interface BackfillReference {
  exportId: string;
  backfillId: string;
}

interface Found {
  row: BatchExportRow;
  key: BackfillKey;
  backfill: BackfillRow;
}

/** Finds a backfill in progress. Undefined: it has ended, or its export was deleted. */
async function find(
  { pool }: Pick<RunDependencies, 'pool'>,
  { exportId, backfillId }: BackfillReference,
): Promise<Found | undefined> {
  const row = await findBatchExportById(pool, exportId);
  if (!row || row.deleted_at !== null) return undefined;
  const key = { projectId: row.project_id, backfillId };
  const backfill = await findBackfill(pool, key);
  const active = backfill?.status === 'Starting' || backfill?.status === 'Running';
  return backfill && active ? { row, key, backfill } : undefined;
}

type SizeDependencies = Pick<RunDependencies, 'pool' | 'sizingPool' | 'compiler' | 'logger'>;

/** Finds out how much a backfill has to do, and writes down that it is running. Null: the backfill has ended. */
export async function sizeBackfill(
  deps: SizeDependencies,
  reference: BackfillReference,
  work: Pick<Work, 'beat'>,
): Promise<{ total: number } | null> {
  const found = await find(deps, reference);
  return found ? whileBeating(work, () => size(deps, found)) : null;
}

/** How long finding the first data and counting the rows may take, in milliseconds. A backfill can do without both. */
const LONGEST_STEP = 10_000;
const LONGEST_ESTIMATE = 20_000;

const text = (instant: number) => new Date(instant).toISOString();

async function size(
  deps: SizeDependencies,
  { row, key, backfill }: Found,
): Promise<{ total: number } | null> {
  const { pool, sizingPool } = deps;
  let plan = planBackfill(row, backfill, Date.now());
  const { model } = row;
  if (model !== WHOLE_QUERY && plan.start !== null && plan.start < plan.end) {
    const range = { start: plan.start, end: plan.end };
    const first = await firstDataWithin(sizingPool, row.project_id, modelOf(model).firstData, range, {
      timeoutMs: LONGEST_STEP,
    });
    const adjusted = text(raisedStart(row, range, first));
    plan = planBackfill(row, { ...backfill, adjusted_start_at: adjusted }, Date.now());
  }
  // Counting the rows of a query takes as long as exporting them.
  const records = plan.total === 0 ? 0 : isOnce(row) ? null : await countRows(deps, row, plan);
  const known = {
    adjustedStart: plan.start === null ? null : text(plan.start),
    totalRuns: plan.total,
    totalRecords: records,
  };
  if (!(await runBackfill(pool, key, known))) return null;
  const message = `Starting backfill of range ${rangeText(plan, '-')}, ${plan.total} runs`;
  await insertLogs(pool, keyOf(row), null, [{ level: 'INFO', message }]);
  return { total: plan.total };
}

/** Counts the rows of a backfill. Null: their number is not known. */
async function countRows(
  { sizingPool, compiler, logger }: SizeDependencies,
  row: BatchExportRow,
  { start, end }: BackfillPlan,
): Promise<number | null> {
  try {
    const query = await exportQuery(compiler, row, { start, end });
    return (await estimate(sizingPool, query, { timeoutMs: LONGEST_ESTIMATE })).rows;
  } catch (error) {
    // The runs of the backfill will report a ModelError.
    if (!(error instanceof ModelError))
      logger.warn({ err: error }, 'the rows of a backfill could not be counted');
    return null;
  }
}

/** How many completed intervals one call skips. */
const MOST_SKIPPED = 10_000;

export interface ListIntervalsInput extends BackfillReference {
  /** The end of the last interval that was listed. Null: none was. */
  after: string | null;
  limit: number;
}

export interface NextIntervals {
  /** `done`: this backfill has completed the interval already, in an earlier workflow that was lost. */
  intervals: (IntervalText & { done: boolean })[];
  /** The number of completed intervals before them that were skipped. */
  skipped: number;
  /**
   * The end of the last of these intervals, from which to continue. Null: there are no more, or the backfill has ended.
   */
  last: string | null;
}

/** Lists the next intervals of a backfill. */
export async function listBackfillIntervals(
  deps: Pick<RunDependencies, 'pool'>,
  { after: listed, limit, ...reference }: ListIntervalsInput,
): Promise<NextIntervals> {
  const found = await find(deps, reference);
  if (!found) return { intervals: [], skipped: 0, last: null };
  const { row, key, backfill } = found;
  const plan = planBackfill(row, backfill, Date.now());
  let skipped = 0;
  for (let after = listed; ; ) {
    const page = pageOf(row, plan, after, limit);
    const [first, last] = [page[0], page.at(-1)];
    if (!first || !last) return { intervals: [], skipped, last: null };
    const bounds = { after: first.start ?? '-infinity', until: last.end };
    const done = new Set((await completedByBackfill(deps.pool, key, bounds)).map((one) => Date.parse(one)));
    const intervals = page.map((one) => ({ ...one, done: done.has(Date.parse(one.end)) }));
    const more = plan.start !== null && Date.parse(last.end) < plan.end;
    const isDone = intervals.every((one) => one.done);
    if (!more || !isDone || skipped >= MOST_SKIPPED)
      return { intervals, skipped, last: more ? last.end : null };
    // A page of completed intervals needs no answer of its own, because the history of the workflow has limited room.
    skipped += intervals.length;
    after = last.end;
  }
}

/** Lists the next intervals of a plan, beginning at the instant `after`. */
function pageOf(
  row: BatchExportRow,
  { start, end }: BackfillPlan,
  after: string | null,
  limit: number,
): IntervalText[] {
  if (start === null) return after === null ? [{ start: null, end: text(end) }] : [];
  const from = after === null ? start : Date.parse(after);
  const page: IntervalText[] = [];
  if (from >= end) return page;
  for (const interval of intervalsWithin(cadenceOfRow(row), { start: from, end })) {
    page.push(intervalText(interval));
    if (page.length >= limit) break;
  }
  return page;
}

export interface FinishBackfillInput extends BackfillReference {
  status: 'Completed' | 'Failed' | 'Cancelled';
  /** A text that says how many of its intervals were completed. */
  text: string;
}

const WORDS = { Completed: 'finished successfully', Failed: 'finished', Cancelled: 'was cancelled' } as const;

/**
 * Writes down how a backfill ended. Returns its status, which differs from the input if somebody else ended it before.
 */
export async function finishBackfill(
  { pool }: Pick<RunDependencies, 'pool'>,
  { exportId, backfillId, status, text: progress }: FinishBackfillInput,
): Promise<string> {
  const row = await findBatchExportById(pool, exportId);
  if (!row) return 'Cancelled';
  const key = { projectId: row.project_id, backfillId };
  const backfill = await findBackfill(pool, key);
  if (!backfill) return 'Cancelled';
  const reason = status === 'Completed' ? null : `${progress}.`;
  const level = status === 'Completed' ? 'INFO' : 'WARNING';
  const log = { level, message: `Backfill ${WORDS[status]}: ${progress}` } as const;
  const ended = await transaction(pool, (client) => endBackfill(client, backfill, { status, reason, log }));
  return ended ? status : ((await findBackfill(pool, key))?.status ?? 'Cancelled');
}
