import { Context } from '@temporalio/activity';
import { transaction } from '../../db/pool.ts';
import { isStatementTimeout } from '../../db/reading.ts';
import { exportQuery } from '../../exports/reads/query.ts';
import {
  type BatchExportRow,
  type ExportKey,
  findBatchExportById,
} from '../../exports/rows/batch-exports.ts';
import { listChecks, recordCheck } from '../../exports/rows/checks.ts';
import { insertLogs } from '../../exports/rows/logs.ts';
import type { RunRow } from '../../exports/rows/runs.ts';
import { listUncheckedRuns } from '../../exports/rows/unchecked.ts';
import { intervalKey } from '../../exports/rules/interval-states.ts';
import { type Evidence, sourceProblems } from '../../exports/rules/verify-report.ts';
import type { NoticeInput } from '../../exports/temporal.ts';
import type { IntervalText } from '../../intervals/index.ts';
import { countRows } from '../../models/index.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { judge, ofSource } from './failures.ts';
import { hashRows } from './hash-rows.ts';
import { isExpired } from './retention.ts';

/** Runs of the last two days: what is older was looked at, or was changed since. */
const SINCE = 2 * 86_400_000;
const RUNS_PER_PASS = 2_000;
const LONGEST_PASS = 90_000;
const LONGEST_COUNT = 30_000;
/** Of so many rows the checksum is compared too; of more, their number. */
const HASHED_ROWS = 100_000;

export interface CheckedSources {
  checked: number;
  differ: number;
  /** Workers of an older version told of these; now they are told of before this is answered. */
  notices: NoticeInput[];
}

/** Compares what runs exported with what the database has now: once for each run of events. */
export function createCheckSources({
  pool,
  schedules,
  logger,
  eventRetentionDays,
  exports,
}: ActivityDependencies) {
  const { parser, copyPool, noticeWebhook } = exports;

  async function readSource(row: BatchExportRow, run: RunRow): Promise<Evidence['source']> {
    const [start, end] = [run.data_interval_start as string, run.data_interval_end];
    const none = { rows: null, hash: null };
    if (isExpired(row, { start, end }, eventRetentionDays, Date.now())) return { state: 'expired', ...none };
    try {
      const query = await exportQuery(parser, row, { start: Date.parse(start), end: Date.parse(end) });
      if ((run.records_total_count ?? 0) <= HASHED_ROWS) {
        return { state: 'read', ...(await hashRows(copyPool, query, AbortSignal.timeout(LONGEST_COUNT))) };
      }
      return { state: 'read', rows: await countRows(copyPool, query, LONGEST_COUNT), hash: null };
    } catch (thrown) {
      const error = ofSource(thrown);
      const slow = isStatementTimeout(error) || (error as Error).name === 'TimeoutError';
      if (!slow && judge(error).again) throw error;
      const problem = slow ? 'reading the rows took too long' : judge(error).message;
      return { state: 'unread', ...none, problem: `Not compared: ${problem}` };
    }
  }

  /** Told of before it is written down: a pass that is killed in between tells of the same again, as one notice. */
  async function tell(row: BatchExportRow, run: RunRow, inDatabase: number | null): Promise<void> {
    if (noticeWebhook === undefined) return;
    const about = {
      projectId: row.project_id,
      exportId: row.id,
      runId: run.id,
      at: new Date().toISOString(),
    };
    const details = { exported: run.records_total_count, in_database: inDatabase };
    await schedules.exports.startNotice({ event: 'batch_export.differs', ...about, details }, run.id);
  }

  /** Whether an earlier run of the interval was other than the database already. */
  async function differedBefore(key: ExportKey, { start, end }: IntervalText): Promise<boolean> {
    const checks = await listChecks(pool, key, { after: start ?? '-infinity', until: end });
    return checks.some(
      (one) =>
        one.state === 'differs' &&
        intervalKey(one.data_interval_start, one.data_interval_end) === intervalKey(start, end),
    );
  }

  /** Answers whether it is news that they differ. */
  async function check(row: BatchExportRow, run: RunRow): Promise<boolean> {
    const source = await readSource(row, run);
    const problems = sourceProblems({ run, source });
    const key = { projectId: row.project_id, exportId: row.id };
    const state = problems.length > 0 ? 'differs' : source.state === 'expired' ? 'expired' : 'same';
    const interval = { start: run.data_interval_start, end: run.data_interval_end };
    const news = state === 'differs' && !(await differedBefore(key, interval));
    if (news) await tell(row, run, source.rows);
    const written = {
      ...interval,
      state,
      runId: run.id,
      sourceRows: source.rows,
      contentHash: source.hash,
      problem: problems[0] ?? source.problem ?? null,
    } as const;
    const message = `The interval ${interval.start} - ${interval.end} differs: ${problems[0]}`;
    await transaction(pool, async (client) => {
      await recordCheck(client, key, written);
      if (news) await insertLogs(client, key, run.id, [{ level: 'WARNING', message }]);
    });
    return news;
  }

  return async function checkSources(): Promise<CheckedSources> {
    const until = performance.now() + LONGEST_PASS;
    const since = new Date(Date.now() - SINCE).toISOString();
    const result: CheckedSources = { checked: 0, differ: 0, notices: [] };
    for (const run of await listUncheckedRuns(pool, since, RUNS_PER_PASS)) {
      if (performance.now() > until) break;
      Context.current().heartbeat(result.checked);
      const row = await findBatchExportById(pool, run.batch_export_id);
      if (!row) continue;
      try {
        const news = await check(row, run);
        result.checked += 1;
        if (news) result.differ += 1;
      } catch (error) {
        // The next pass tries it again; the others have their turn.
        logger.warn(
          { err: error, exportId: row.id, runId: run.id },
          'a run could not be compared with the database',
        );
      }
    }
    return result;
  };
}
