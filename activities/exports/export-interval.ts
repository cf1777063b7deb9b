import { Context } from '@temporalio/activity';
import { transaction } from '../../db/pool.ts';
import { storableText } from '../../db/storable-text.ts';
import { secretValues } from '../../destinations/config.ts';
import { withoutSecrets } from '../../destinations/errors.ts';
import { findDestination } from '../../destinations/registry.ts';
import { exportQuery } from '../../exports/reads/query.ts';
import { openSettings } from '../../exports/reads/settings.ts';
import { type BatchExportRow, findBatchExportById } from '../../exports/rows/batch-exports.ts';
import { insertLogs, type LogEntry } from '../../exports/rows/logs.ts';
import { findRun } from '../../exports/rows/run-lists.ts';
import {
  beginAttempt,
  completeRun,
  markRunEnded,
  type RunKey,
  type RunRow,
  recordTrouble,
} from '../../exports/rows/runs.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { type Attempt, OvertakenError, watchAttempt } from './attempt.ts';
import { boundDestination, destinationRun } from './bound-destination.ts';
import { failureOf, judge, stopped } from './failures.ts';
import { untilFinal } from './final-rows.ts';
import { requireUnexpired } from './retention.ts';
import { leaveNoPart, takeBackParts } from './take-back-parts.ts';
import { type Transferred, transfer } from './transfer.ts';

export interface ExportIntervalResult {
  status: string;
  records: number;
  rejected: number;
  bytes: number;
  error: string | null;
}

const resultOf = (run: RunRow | undefined): ExportIntervalResult => ({
  status: run?.status ?? 'Cancelled',
  records: run?.records_completed ?? 0,
  rejected: run?.records_failed ?? 0,
  bytes: run?.bytes_exported ?? 0,
  error: run?.latest_error ?? null,
});

const OUT_OF_TIME = 'It took longer than one attempt may take';
const LONGEST_MESSAGE = 10_000;
const count = (number: number, what: string) => `${number} ${what}${number === 1 ? '' : 's'}`;

function closingWords({ totals, rejections }: Transferred): { level: 'INFO' | 'WARNING'; message: string }[] {
  const { records_completed: rows, records_failed: rejected, bytes_exported: bytes } = totals;
  const left = rejections.map((one) => ({ level: 'WARNING' as const, message: `Left out ${one}` }));
  if (rejected > rejections.length) {
    const more = `${rejected - rejections.length} more rows were left out`;
    left.push({ level: 'WARNING', message: more });
  }
  if (rows === 0 && rejected === 0) {
    const message = 'Batch export finished: there is no data in this interval that matches its settings';
    return [{ level: 'INFO', message }];
  }
  const done = `Batch export finished successfully with ${count(rows, 'record')} (${count(bytes, 'byte')})`;
  return [...left, { level: 'INFO', message: rejected > 0 ? `${done}; ${rejected} left out` : done }];
}

/** Exports the interval of a run, whole, whatever earlier attempts left; completes the run. */
export function createExportInterval(deps: ActivityDependencies) {
  const { pool, logger } = deps;
  const { metrics, keyring, parser, copyPool } = deps.exports;

  async function carry(
    row: BatchExportRow,
    run: RunRow,
    attempt: Attempt,
  ): Promise<{ transferred: Transferred; said: LogEntry[] }> {
    const start = run.data_interval_start === null ? null : Date.parse(run.data_interval_start);
    const end = Date.parse(run.data_interval_end);
    const destination = boundDestination(deps.exports, row);
    const query = await exportQuery(parser, row, { start, end });
    await untilFinal(pool, end, attempt);
    const interval = { start: run.data_interval_start, end: run.data_interval_end };
    requireUnexpired(row, interval, deps.eventRetentionDays, Date.now());
    const work = destinationRun(row, run.id, interval);
    const transferred = await transfer({ copyPool, query, destination, run: work, attempt });
    if (destination.kind !== 'files') return { transferred, said: [] };
    await leaveNoPart(pool, destination, work, run, attempt);
    return { transferred, said: await takeBackParts(pool, destination, work, run, attempt) };
  }

  function observe(row: BatchExportRow, run: RunRow): void {
    const destination = row.destination_type;
    const finished = Date.parse(run.finished_at as string);
    metrics.runs.inc({ status: 'Completed', destination });
    metrics.rows.inc({ destination }, run.records_completed ?? 0);
    metrics.rejected.inc({ destination }, run.records_failed ?? 0);
    metrics.bytes.inc({ destination }, run.bytes_exported ?? 0);
    metrics.seconds.observe({ destination }, (finished - Date.parse(run.created_at)) / 1000);
    if (run.backfill_id === null)
      metrics.lag.observe({ destination }, Math.max(0, finished - Date.parse(run.data_interval_end)) / 1000);
  }

  /** A message may come from anywhere on the way. */
  function cleaned(row: BatchExportRow, message: string): string {
    try {
      const { type, config } = openSettings(keyring, row);
      const fields = findDestination(type)?.fields;
      return fields ? withoutSecrets(message, secretValues(fields, config)) : message;
    } catch {
      // They could not be read, so they are in no message.
      return message;
    }
  }

  /** Why this attempt came to nothing. Postgres may be what failed; Temporal knows, too. */
  async function sayTrouble(row: BatchExportRow, run: RunRow, message: string): Promise<void> {
    const key = { projectId: row.project_id, exportId: row.id };
    const { attempt } = Context.current().info;
    const entry = `Attempt ${attempt} failed and will be repeated: ${message}`;
    try {
      const runKey = { projectId: row.project_id, runId: run.id };
      const isMine = await recordTrouble(pool, runKey, run.fence, message);
      if (isMine) await insertLogs(pool, key, run.id, [{ level: 'WARNING', message: entry }]);
    } catch (error) {
      logger.debug({ err: error, runId: run.id }, 'the trouble of a run could not be written down');
    }
  }

  async function fail(row: BatchExportRow, run: RunRow, error: unknown): Promise<never> {
    const judged = judge(error);
    // Servers say what they like, at any length; Temporal refuses what is too long, and the attempt would never end.
    const verdict = { ...judged, message: storableText(cleaned(row, judged.message), LONGEST_MESSAGE) };
    const { attempt } = Context.current().info;
    const { again, reason, message } = verdict;
    // What is not known may be a fault of ours: then the stack matters.
    const about = reason === 'unexpected' ? { err: error } : { reason, message };
    logger.warn({ exportId: row.id, runId: run.id, attempt, again, ...about }, 'an attempt at a run failed');
    if (again) {
      metrics.retries.inc({ destination: row.destination_type, reason });
      await sayTrouble(row, run, message);
    }
    throw failureOf(verdict, attempt);
  }

  /** Whoever deleted the export may not have come to cancel its runs. */
  async function endWithExport(row: BatchExportRow | undefined, key: RunKey): Promise<void> {
    if (row?.deleted_at) await markRunEnded(pool, key, 'Cancelled', 'The batch export was deleted');
  }

  return async function exportInterval(input: {
    exportId: string;
    runId: string;
  }): Promise<ExportIntervalResult> {
    const context = Context.current();
    const row = await findBatchExportById(pool, input.exportId);
    // With its project everything is gone.
    if (!row) return resultOf(undefined);
    const key = { projectId: row.project_id, runId: input.runId };
    await endWithExport(row, key);
    const run = await beginAttempt(pool, key);
    // Over: cancelled meanwhile, or completed by an attempt whose answer was lost.
    if (!run) return resultOf(await findRun(pool, key));
    const attempt = watchAttempt(pool, key, run.fence, context);
    metrics.active.inc();
    try {
      const { transferred, said } = await carry(row, run, attempt);
      const done = await transaction(pool, async (client) => {
        const completed = await completeRun(client, key, run.fence, transferred.totals);
        if (completed) {
          const exportKey = { projectId: row.project_id, exportId: row.id };
          await insertLogs(client, exportKey, run.id, [...said, ...closingWords(transferred)]);
        }
        return completed;
      });
      if (!done) throw new OvertakenError('The run was ended while it was being completed');
      observe(row, done);
      return resultOf(done);
    } catch (error) {
      const stop = stopped(context);
      if (stop) {
        if (context.cancellationDetails?.timedOut) await sayTrouble(row, run, OUT_OF_TIME);
        throw stop;
      }
      if (error instanceof OvertakenError || attempt.signal.reason instanceof OvertakenError) {
        await endWithExport(await findBatchExportById(pool, row.id), key);
        const now = await findRun(pool, key);
        if (now?.finished_at) return resultOf(now);
      }
      const reason = attempt.signal.aborted ? attempt.signal.reason : error;
      return await fail(row, run, reason);
    } finally {
      metrics.active.dec();
      await attempt.close();
    }
  };
}
