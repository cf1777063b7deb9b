import { exportQuery } from '../../exports/reads/query.ts';
import {
  type BackfillKey,
  type BackfillRow,
  completedByBackfill,
  findBackfill,
  markBackfillEnded,
  runBackfill,
} from '../../exports/rows/backfills.ts';
import { type BatchExportRow, findBatchExportById } from '../../exports/rows/batch-exports.ts';
import { firstDataWithin } from '../../exports/rows/first-data.ts';
import { insertLogs } from '../../exports/rows/logs.ts';
import { type BackfillPlan, planBackfill, raisedStart } from '../../exports/rules/backfill-plan.ts';
import { cadenceOfRow } from '../../exports/rules/cadence.ts';
import { type IntervalText, intervalsWithin } from '../../intervals/index.ts';
import { estimate, ModelError } from '../../models/index.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { whileBeating } from './while-beating.ts';

export interface BackfillReference {
  exportId: string;
  backfillId: string;
}

interface Found {
  row: BatchExportRow;
  key: BackfillKey;
  backfill: BackfillRow;
}

/** How long it may take to find out how large a backfill will be: nothing depends on it. */
const LONGEST_ESTIMATE = 20_000;
const LONGEST_STEP = 10_000;

/** So many intervals that are done already are passed over at once. */
const MOST_SKIPPED = 10_000;

interface NextIntervals {
  intervals: (IntervalText & { done: boolean })[];
  skipped: number;
  last: string | null;
}

const text = (instant: number) => new Date(instant).toISOString();

/** The intervals of a plan from where `after` ends on. */
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
    page.push({ start: text(interval.start), end: text(interval.end) });
    if (page.length >= limit) break;
  }
  return page;
}

export function createBackfillActivities({ pool, exports, logger }: ActivityDependencies) {
  /** Undefined: the backfill is over, or there is nothing left that it could be of. */
  async function find({ exportId, backfillId }: BackfillReference): Promise<Found | undefined> {
    const row = await findBatchExportById(pool, exportId);
    if (!row || row.deleted_at !== null) return undefined;
    const key = { projectId: row.project_id, backfillId };
    const backfill = await findBackfill(pool, key);
    const active = backfill?.status === 'Starting' || backfill?.status === 'Running';
    return backfill && active ? { row, key, backfill } : undefined;
  }

  async function rowsOf(row: BatchExportRow, start: number | null, end: number): Promise<number | null> {
    try {
      const query = await exportQuery(exports.parser, row, { start, end });
      return (await estimate(pool, query, LONGEST_ESTIMATE)).rows;
    } catch (error) {
      // Its runs will say what is wrong.
      if (!(error instanceof ModelError)) logger.warn({ err: error }, 'the size of a backfill is not known');
      return null;
    }
  }

  async function size({ row, key, backfill }: Found): Promise<{ total: number } | null> {
    let plan = planBackfill(row, backfill, Date.now());
    if (plan.start !== null && plan.start < plan.end) {
      const range = { start: plan.start, end: plan.end };
      const first = await firstDataWithin(pool, row, range, { timeoutMs: LONGEST_STEP });
      const adjusted = text(raisedStart(row, range, first));
      plan = planBackfill(row, { ...backfill, adjusted_start_at: adjusted }, Date.now());
    }
    const records = plan.total === 0 ? 0 : await rowsOf(row, plan.start, plan.end);
    const known = {
      adjustedStart: plan.start === null ? null : text(plan.start),
      totalRuns: plan.total,
      totalRecords: records,
    };
    if (!(await runBackfill(pool, key, known))) return null;
    const range = `${plan.start === null ? 'the beginning' : text(plan.start)} - ${text(plan.end)}`;
    await insertLogs(pool, { projectId: row.project_id, exportId: row.id }, null, [
      { level: 'INFO', message: `Starting backfill of range ${range}, ${plan.total} runs` },
    ]);
    return { total: plan.total };
  }

  return {
    /** Finds out what there is to do, and says that it is being done. Null: it is over. */
    async sizeBackfill(reference: BackfillReference): Promise<{ total: number } | null> {
      const found = await find(reference);
      return found ? whileBeating(() => size(found)) : null;
    },

    /**
     * The next intervals; `done`: it has completed this one before, when its workflow was another. `skipped`: so many
     * before them are done. `last`: where to go on; null at the end, also when the backfill was ended meanwhile.
     */
    async listBackfillIntervals(
      reference: BackfillReference & { after: string | null; limit: number },
    ): Promise<NextIntervals> {
      const found = await find(reference);
      if (!found) return { intervals: [], skipped: 0, last: null };
      const { row, key, backfill } = found;
      const plan = planBackfill(row, backfill, Date.now());
      let skipped = 0;
      for (let { after } = reference; ; ) {
        const page = pageOf(row, plan, after, reference.limit);
        const [first, last] = [page[0], page.at(-1)];
        if (!first || !last) return { intervals: [], skipped, last: null };
        const bounds = { after: first.start ?? '-infinity', until: last.end };
        const done = new Set((await completedByBackfill(pool, key, bounds)).map((one) => Date.parse(one)));
        const intervals = page.map((one) => ({ ...one, done: done.has(Date.parse(one.end)) }));
        const more = plan.start !== null && Date.parse(last.end) < plan.end;
        const isDone = intervals.every((one) => one.done);
        if (!more || !isDone || skipped >= MOST_SKIPPED)
          return { intervals, skipped, last: more ? last.end : null };
        // A history has room for so many answers only.
        skipped += intervals.length;
        after = last.end;
      }
    },

    /** Its end; answers the status that it has, which is another if somebody ended it before. */
    async finishBackfill(
      reference: BackfillReference & { status: 'Completed' | 'Failed' | 'Cancelled'; text: string },
    ): Promise<string> {
      const { exportId, backfillId, status } = reference;
      const row = await findBatchExportById(pool, exportId);
      if (!row) return 'Cancelled';
      const key = { projectId: row.project_id, backfillId };
      const ended = await markBackfillEnded(
        pool,
        key,
        status,
        status === 'Completed' ? null : `${reference.text}.`,
      );
      if (!ended) return (await findBackfill(pool, key))?.status ?? 'Cancelled';
      const word = { Completed: 'finished successfully', Failed: 'finished', Cancelled: 'was cancelled' }[
        status
      ];
      await insertLogs(pool, { projectId: row.project_id, exportId }, null, [
        {
          level: status === 'Completed' ? 'INFO' : 'WARNING',
          message: `Backfill ${word}: ${reference.text}`,
        },
      ]);
      return status;
    },
  };
}
