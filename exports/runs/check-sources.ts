import { transaction } from '../../db/pool.ts';
import { isStatementTimeout } from '../../db/reading.ts';
import type { IntervalText } from '../../intervals/index.ts';
import { countRows, namesOfModels } from '../../models/index.ts';
import { exportQuery } from '../reads/query.ts';
import { type BatchExportRow, type ExportKey, findBatchExportsById, keyOf } from '../rows/batch-exports.ts';
import { type Check, listChecks, listUncheckedRuns, recordChecks } from '../rows/checks.ts';
import { insertLogs } from '../rows/logs.ts';
import type { RunRow } from '../rows/runs.ts';
import { intervalKey } from '../rules/interval-states.ts';
import { type Evidence, sourceProblems } from '../rules/verify-report.ts';
import type { RunDependencies } from './dependencies.ts';
import { judge } from './judgement.ts';
import { hashRows, isExpired, ofSource } from './source.ts';
import type { Work } from './work.ts';

/**
 * Only runs of this time before now are compared. Older ones were compared before, or their export was changed since.
 */
const SINCE = 2 * 86_400_000;
const RUNS_PER_PASS = 2_000;
/** How many comparisons that found no difference are written down at once. */
const WRITTEN_AT_ONCE = 100;
const LONGEST_PASS = 90_000;
const LONGEST_COUNT = 30_000;
/** If a run has at most so many rows, their checksum is compared, otherwise only their number. */
const HASHED_ROWS = 100_000;

export interface CheckedSources {
  checked: number;
  differ: number;
  /** Always empty, because notices are sent before this result. Workflows of an older version read it. */
  notices: [];
}

/** Compares what runs exported with what the database has now, once for each run of a model whose rows never change. */
export async function checkSources(
  deps: RunDependencies,
  { beat }: Pick<Work, 'beat'>,
): Promise<CheckedSources> {
  const { pool, logger } = deps;
  const until = performance.now() + LONGEST_PASS;
  const unchanging = namesOfModels((model) => !model.changes);
  const since = new Date(Date.now() - SINCE).toISOString();
  const result: CheckedSources = { checked: 0, differ: 0, notices: [] };
  const runs = await listUncheckedRuns(pool, unchanging, since, RUNS_PER_PASS);
  const exports = await findBatchExportsById(pool, [...new Set(runs.map((run) => run.batch_export_id))]);
  let alike: (ExportKey & Check)[] = [];
  const writeAlike = async () => {
    await recordChecks(pool, alike);
    alike = [];
  };
  for (const run of runs) {
    if (performance.now() > until) break;
    beat(result.checked);
    const row = exports.get(run.batch_export_id);
    if (!row) continue;
    try {
      const check = await compare(deps, row, run);
      if (check.state !== 'differs') alike.push({ ...keyOf(row), ...check });
      else if (await recordDifference(deps, row, run, check)) result.differ += 1;
      result.checked += 1;
    } catch (error) {
      // The next pass tries this run again. This pass continues with the others.
      logger.warn(
        { err: error, exportId: row.id, runId: run.id },
        'a run could not be compared with the database',
      );
    }
    // If the pass is killed, it has compared these for nothing, and nothing is lost.
    if (alike.length >= WRITTEN_AT_ONCE) await writeAlike();
  }
  await writeAlike();
  return result;
}

/** Compares a run with the database. */
async function compare(deps: RunDependencies, row: BatchExportRow, run: RunRow): Promise<Check> {
  const source = await readSource(deps, row, run);
  const problems = sourceProblems({ run, source });
  return {
    ...{ start: run.data_interval_start, end: run.data_interval_end },
    state: problems.length > 0 ? 'differs' : source.state === 'expired' ? 'expired' : 'same',
    runId: run.id,
    sourceRows: source.rows,
    contentHash: source.hash,
    problem: problems[0] ?? source.problem ?? null,
  };
}

/** Writes down that a run and the database differ. Returns whether they did not differ before, and tells of it then. */
async function recordDifference(
  deps: RunDependencies,
  row: BatchExportRow,
  run: RunRow,
  check: Check,
): Promise<boolean> {
  const key = keyOf(row);
  const news = !(await differedBefore(deps, key, check));
  if (news) await tell(deps, row, run, check.sourceRows);
  const message = `The interval ${check.start} - ${check.end} differs: ${check.problem}`;
  await transaction(deps.pool, async (client) => {
    await recordChecks(client, [{ ...key, ...check }]);
    if (news) await insertLogs(client, key, run.id, [{ level: 'WARNING', message }]);
  });
  return news;
}

async function readSource(
  { compiler, copyPool, eventRetentionDays }: RunDependencies,
  row: BatchExportRow,
  run: RunRow,
): Promise<Evidence['source']> {
  const [start, end] = [run.data_interval_start as string, run.data_interval_end];
  const none = { rows: null, hash: null };
  if (isExpired(row, { start, end }, eventRetentionDays, Date.now())) return { state: 'expired', ...none };
  try {
    const query = await exportQuery(compiler, row, { start: Date.parse(start), end: Date.parse(end) });
    if (query.cohorts) {
      const problem = 'Not compared: members of cohorts may have changed since the run';
      return { state: 'members', ...none, problem };
    }
    if ((run.records_total_count ?? 0) <= HASHED_ROWS) {
      return { state: 'read', ...(await hashRows(copyPool, query, AbortSignal.timeout(LONGEST_COUNT))) };
    }
    return {
      state: 'read',
      rows: await countRows(copyPool, query, { timeoutMs: LONGEST_COUNT }),
      hash: null,
    };
  } catch (thrown) {
    const error = ofSource(thrown);
    const slow = isStatementTimeout(error) || (error as Error).name === 'TimeoutError';
    if (!slow && judge(error).again) throw error;
    const problem = slow ? 'reading the rows took too long' : judge(error).message;
    return { state: 'unread', ...none, problem: `Not compared: ${problem}` };
  }
}

/** Answers whether an earlier check of the interval found a difference. */
async function differedBefore(
  { pool }: RunDependencies,
  key: ExportKey,
  { start, end }: IntervalText,
): Promise<boolean> {
  const checks = await listChecks(pool, key, { after: start ?? '-infinity', until: end });
  return checks.some(
    (one) =>
      one.state === 'differs' &&
      intervalKey(one.data_interval_start, one.data_interval_end) === intervalKey(start, end),
  );
}

/**
 * Sends a notice. Call it before the check is written down. If the pass is killed in between, the next one sends the
 * same notice again, and it arrives once.
 */
async function tell(
  { temporal, noticeWebhook }: RunDependencies,
  row: BatchExportRow,
  run: RunRow,
  inDatabase: number | null,
): Promise<void> {
  if (noticeWebhook === undefined) return;
  const about = {
    ...keyOf(row),
    runId: run.id,
    at: new Date().toISOString(),
  };
  const details = { exported: run.records_total_count, in_database: inDatabase };
  await temporal.startNotice({ event: 'batch_export.differs', ...about, details }, run.id);
}
