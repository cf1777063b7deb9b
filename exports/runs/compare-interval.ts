import { copyOut } from '../../db/copy-out.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { DestinationError } from '../../destinations/errors.ts';
import { type IntervalText, readInterval } from '../../intervals/index.ts';
import { ModelError, type ModelQuery, rulesOf } from '../../models/index.ts';
import { refuse } from '../../refusals.ts';
import { exportQuery } from '../reads/query.ts';
import { type BatchExportRow, findBatchExportById, keyOf } from '../rows/batch-exports.ts';
import { recordChecks } from '../rows/checks.ts';
import { findCompletedRun } from '../rows/run-lists.ts';
import { isOnce } from '../rules/once.ts';
import { type Evidence, judgeInterval, type VerifyReport } from '../rules/verify-report.ts';
import type { VerifyIntervalInput } from '../temporal.ts';
import type { RunDependencies } from './dependencies.ts';
import type { AttemptDependencies } from './export-interval.ts';
import { hashRows, isExpired } from './source.ts';
import { mayNameFor } from './traces.ts';
import { boundDestination, destinationRun } from './transfer.ts';
import { LastAttemptError, type WorkAttempt, whileBeating } from './work.ts';
import { holdPlace, inPlace } from './worker-place.ts';

export interface CompareIntervalInput extends VerifyIntervalInput {
  /** The workflow, if it can wait for a place of a worker. Those of older versions cannot. */
  workflow?: { id: string; runId: string };
}

/** How many attempts a verification has, those after a wait for a place included. */
const MOST_ATTEMPTS = 5;

/**
 * Reads an interval again, in the database and at its destination, and says whether they are the same. Throws a
 * NoPlaceError if no worker has a place for it.
 */
export async function compareInterval(
  deps: AttemptDependencies,
  { exportId, interval, workflow }: CompareIntervalInput,
  work: WorkAttempt,
): Promise<VerifyReport> {
  const row = await findBatchExportById(deps.pool, exportId);
  if (!row || row.deleted_at !== null) throw refuse.absent('The batch export was deleted.');
  const claim = {
    ...{ projectId: row.project_id, exportId, lane: deps.lane, kind: 'verification' as const },
    ...{ id: workflow?.runId ?? uuidv7(), workflowId: workflow?.id },
  };
  return inPlace(deps, claim, work, async (place, numbered) => {
    const held = holdPlace(deps, claim, place, numbered);
    try {
      return await whileBeating(work, () =>
        compare(deps, row, interval, { ...numbered, signal: held.signal }),
      );
    } catch (error) {
      if (work.signal.aborted || numbered.number < MOST_ATTEMPTS) throw error;
      throw new LastAttemptError((error as Error).message, { cause: error });
    } finally {
      await held.close();
    }
  });
}

async function compare(
  deps: RunDependencies,
  row: BatchExportRow,
  interval: IntervalText,
  work: WorkAttempt,
): Promise<VerifyReport> {
  const { pool } = deps;
  const key = keyOf(row);
  const run = await findCompletedRun(pool, key, interval);
  const { source, query } = await readSource(deps, row, interval, work.signal);
  const there = await readDestination(deps, row, interval, run?.id ?? '', query, work);
  const judged = judgeInterval({ run, source, ...there });
  const { state, rows, hash } = source;
  work.signal.throwIfAborted();
  if (judged.verdict !== 'unknown') {
    await recordChecks(pool, [
      {
        ...key,
        ...interval,
        state: judged.verdict,
        runId: run?.id ?? null,
        sourceRows: rows,
        contentHash: hash,
        problem: judged.problems.length > 0 ? judged.problems.slice(0, 20).join(' ') : null,
      },
    ]);
  }
  return {
    interval,
    run_id: run?.id ?? null,
    source: { state, rows, hash },
    ...judged,
    checked_at: new Date().toISOString(),
  };
}

async function readSource(
  { compiler, copyPool, eventRetentionDays }: RunDependencies,
  row: BatchExportRow,
  interval: IntervalText,
  signal: AbortSignal,
): Promise<{ source: Evidence['source']; query?: ModelQuery }> {
  const none = { rows: null, hash: null };
  if (isOnce(row)) return { source: { state: 'once', ...none } };
  try {
    const query = await exportQuery(compiler, row, readInterval(interval));
    const known = { query, source: { state: 'expired' as const, ...none } };
    if (isExpired(row, interval, eventRetentionDays, Date.now())) return known;
    const read = await hashRows(copyPool, query, signal);
    const state = rulesOf(row.model).changes ? 'changing' : query.cohorts ? 'members' : 'read';
    return { query, source: { state, ...read } };
  } catch (error) {
    if (!(error instanceof ModelError)) throw error;
    const problem = `The rows cannot be read with the settings that the export has now: ${error.message}`;
    return { source: { state: 'unread', ...none, problem } };
  }
}

/** The verdicts for errors that a destination throws when it is read. All others mean `unknown`. */
const FAILURES: Partial<Record<DestinationError['code'], 'differs' | 'missing'>> = {
  occupied: 'differs',
  mismatch: 'differs',
  missing: 'missing',
};
/** Earlier attempts are repeated if the failure may go away by itself. From this attempt on, it becomes the verdict. */
const LAST_ATTEMPT = 3;

/** Why a table with the result of a query is not compared with anything. */
const NOT_COMPARED =
  'This cannot be compared: the rows of a result of a query have no key, and the query may give other rows by now.';

async function readDestination(
  deps: RunDependencies,
  row: BatchExportRow,
  interval: IntervalText,
  runId: string,
  query: ModelQuery | undefined,
  { signal, number }: WorkAttempt,
): Promise<Pick<Evidence, 'files' | 'rows' | 'failure'>> {
  try {
    const destination = boundDestination(deps, row);
    const run = destinationRun(row, runId, interval);
    if (destination.kind === 'files') {
      const manifestKey = destination.keys(run).manifest;
      const work = { signal, mayName: mayNameFor(deps.pool, row) };
      return { files: { manifestKey, found: await destination.verify(run, work) } };
    }
    if (isOnce(row)) return { failure: { verdict: 'unknown', message: NOT_COMPARED } };
    if (!destination.find || !query) return { rows: null };
    const read = () => copyOut(deps.copyPool, query.text, { settings: query.settings, signal });
    return {
      rows: await destination.find({
        ...{ run, columns: query.columns, rules: rulesOf(row.model).table },
        ...{ read, signal },
      }),
    };
  } catch (error) {
    if (!(error instanceof DestinationError)) throw error;
    if (error.retryable && number < LAST_ATTEMPT) throw error;
    return { failure: { verdict: FAILURES[error.code] ?? 'unknown', message: error.message } };
  }
}
