import { ApplicationFailure, Context } from '@temporalio/activity';
import { copyOut } from '../../db/copy-out.ts';
import { DestinationError } from '../../destinations/errors.ts';
import { exportQuery } from '../../exports/reads/query.ts';
import { type BatchExportRow, findBatchExportById } from '../../exports/rows/batch-exports.ts';
import { recordCheck } from '../../exports/rows/checks.ts';
import { findCompletedRun } from '../../exports/rows/run-lists.ts';
import { type Evidence, judgeInterval, type VerifyReport } from '../../exports/rules/verify-report.ts';
import type { VerifyIntervalInput } from '../../exports/temporal.ts';
import type { IntervalText } from '../../intervals/index.ts';
import { ModelError, type ModelQuery } from '../../models/index.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { boundDestination, destinationRun } from './bound-destination.ts';
import { hashRows } from './hash-rows.ts';
import { isExpired } from './retention.ts';
import { whileBeating } from './while-beating.ts';

const FAILURES: Partial<Record<DestinationError['code'], 'differs' | 'missing'>> = {
  occupied: 'differs',
  mismatch: 'differs',
  missing: 'missing',
};

const instants = ({ start, end }: IntervalText) => ({
  start: start === null ? null : Date.parse(start),
  end: Date.parse(end),
});

/** Reads an interval again, in the database and at its destination, and says whether they are the same. */
export function createCompareInterval(deps: ActivityDependencies) {
  const { pool, eventRetentionDays } = deps;
  const { copyPool, parser } = deps.exports;

  async function readSource(
    row: BatchExportRow,
    interval: IntervalText,
    signal: AbortSignal,
  ): Promise<{ source: Evidence['source']; query?: ModelQuery }> {
    const none = { rows: null, hash: null };
    try {
      const query = await exportQuery(parser, row, instants(interval));
      const known = { query, source: { state: 'expired' as const, ...none } };
      if (isExpired(row, interval, eventRetentionDays, Date.now())) return known;
      const read = await hashRows(copyPool, query, signal);
      return { query, source: { state: row.model === 'events' ? 'read' : 'changing', ...read } };
    } catch (error) {
      if (!(error instanceof ModelError)) throw error;
      const problem = `The rows cannot be read with the settings that the export has now: ${error.message}`;
      return { source: { state: 'unread', ...none, problem } };
    }
  }

  async function readDestination(
    row: BatchExportRow,
    interval: IntervalText,
    runId: string,
    query: ModelQuery | undefined,
    signal: AbortSignal,
  ): Promise<Pick<Evidence, 'files' | 'rows' | 'failure'>> {
    try {
      const destination = boundDestination(deps.exports, row);
      const run = destinationRun(row, runId, interval);
      if (destination.kind === 'files') {
        const manifestKey = destination.keys(run).manifest;
        return { files: { manifestKey, found: await destination.verify(run, signal) } };
      }
      if (!destination.find || !query) return { rows: null };
      const read = () => copyOut(copyPool, query.text, { settings: query.settings, signal });
      return { rows: await destination.find({ run, columns: query.columns, read, signal }) };
    } catch (error) {
      if (!(error instanceof DestinationError)) throw error;
      // What may go away by itself is tried again by Temporal first.
      if (error.retryable && Context.current().info.attempt < 3) throw error;
      return { failure: { verdict: FAILURES[error.code] ?? 'unknown', message: error.message } };
    }
  }

  async function compare(
    row: BatchExportRow,
    interval: IntervalText,
    signal: AbortSignal,
  ): Promise<VerifyReport> {
    const key = { projectId: row.project_id, exportId: row.id };
    const run = await findCompletedRun(pool, key, interval);
    const { source, query } = await readSource(row, interval, signal);
    const there = await readDestination(row, interval, run?.id ?? '', query, signal);
    const judged = judgeInterval({ run, source, ...there });
    const { state, rows, hash } = source;
    if (judged.verdict !== 'unknown') {
      await recordCheck(pool, key, {
        ...interval,
        state: judged.verdict,
        runId: run?.id ?? null,
        sourceRows: rows,
        contentHash: hash,
        problem: judged.problems.length > 0 ? judged.problems.slice(0, 20).join(' ') : null,
      });
    }
    return {
      interval,
      run_id: run?.id ?? null,
      source: { state, rows, hash },
      ...judged,
      checked_at: new Date().toISOString(),
    };
  }

  return async function compareInterval({ exportId, interval }: VerifyIntervalInput): Promise<VerifyReport> {
    const row = await findBatchExportById(pool, exportId);
    if (!row || row.deleted_at !== null) {
      throw ApplicationFailure.nonRetryable('The batch export was deleted.');
    }
    return whileBeating(() => compare(row, interval, Context.current().cancellationSignal));
  };
}
