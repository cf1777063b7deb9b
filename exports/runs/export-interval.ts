import { transaction } from '../../db/pool.ts';
import { storableText } from '../../db/storable-text.ts';
import { secretValues } from '../../destinations/config.ts';
import { withoutSecrets } from '../../destinations/errors.ts';
import { findDestination } from '../../destinations/registry.ts';
import { readInterval } from '../../intervals/index.ts';
import { EXPORT_DELETED, endRun } from '../ending.ts';
import { exportQuery } from '../reads/query.ts';
import { openSettings } from '../reads/settings.ts';
import { type BatchExportRow, findBatchExportById } from '../rows/batch-exports.ts';
import { insertLogs, type LogEntry } from '../rows/logs.ts';
import type { Lane, Place } from '../rows/places.ts';
import { completedBefore, findRun } from '../rows/run-lists.ts';
import { beginAttempt, completeRun, type RunRow, recordTrouble } from '../rows/runs.ts';
import { endTrace } from '../rows/traces.ts';
import { leavesMuchOut, percent, shareLeftOut } from '../rules/left-out.ts';
import type { NoticeInput } from '../temporal.ts';
import { OvertakenError, watchAttempt } from './attempt.ts';
import { requireCohorts } from './cohorts.ts';
import type { RunDependencies } from './dependencies.ts';
import { AttemptFailedError, judge } from './judgement.ts';
import { leaveNoPart, takeBackParts } from './parts.ts';
import { requireUnexpired, untilFinal } from './source.ts';
import { clearUp, traceOf } from './traces.ts';
import { boundDestination, destinationRun, type Transferred, transfer } from './transfer.ts';
import { tellWaits, type WaitingAttempt } from './waiting.ts';
import type { WorkAttempt } from './work.ts';
import { inPlace } from './worker-place.ts';

export interface ExportIntervalInput {
  exportId: string;
  runId: string;
  /** The workflow of the run, if it can wait for a place of a worker. Those of older versions cannot. */
  workflowId?: string;
}

/** What an attempt needs. */
export type AttemptDependencies = RunDependencies & { lane: Lane };

export interface ExportIntervalResult {
  status: string;
  records: number;
  rejected: number;
  bytes: number;
  error: string | null;
  /** The notices to send to the operators. Runs of an older version have none. */
  notices?: NoticeInput[];
}

const OUT_OF_TIME = 'It took longer than one attempt may take';
const LONGEST_MESSAGE = 10_000;

/**
 * Exports the whole interval of a run, whatever earlier attempts left, and completes the run. Throws a NoPlaceError if
 * no worker has a place for it, an AttemptFailedError if the attempt fails, or the reason of the signal if the work was
 * told to stop.
 */
export async function exportInterval(
  deps: AttemptDependencies,
  { exportId, runId, workflowId }: ExportIntervalInput,
  work: WorkAttempt,
): Promise<ExportIntervalResult> {
  const row = await findBatchExportById(deps.pool, exportId);
  // The row was deleted with its project.
  if (!row) return resultOf(undefined);
  await endWithExport(deps, row, runId);
  const projectId = row.project_id;
  const claim = { projectId, id: runId, exportId, kind: 'run', lane: deps.lane, workflowId } as const;
  return inPlace(deps, claim, work, (place, numbered) => attemptRun(deps, row, runId, numbered, place));
}

async function attemptRun(
  deps: RunDependencies,
  row: BatchExportRow,
  runId: string,
  work: WorkAttempt,
  place: Place | undefined,
): Promise<ExportIntervalResult> {
  const { pool, metrics, rhythm } = deps;
  const key = { projectId: row.project_id, runId };
  const run = await beginAttempt(pool, key);
  // The run has ended: it was cancelled, or an attempt whose answer was lost completed it.
  if (!run) return toldResult(deps, await findRun(pool, key));
  const watched = { every: rhythm?.report, stands: rhythm?.stands, place };
  const attempt = tellWaits(watchAttempt(pool, key, run.fence, work, watched), {
    say: waitSayer(deps, row, run),
    after: rhythm?.wait,
  });
  metrics.active.inc();
  try {
    const done = await complete(deps, row, run, await carry(deps, row, run, attempt), place);
    observe(deps, row, done);
    return await toldResult(deps, done);
  } catch (error) {
    await attempt.quiet();
    await clearUp(deps, { exportId: row.id, fence: run.fence });
    if (work.signal.aborted) {
      if (work.isOutOfTime()) await sayTrouble(deps, row, run, work, OUT_OF_TIME);
      throw work.signal.reason;
    }
    if (error instanceof OvertakenError || attempt.signal.reason instanceof OvertakenError) {
      await endWithExport(deps, await findBatchExportById(pool, row.id), runId);
      const now = await findRun(pool, key);
      if (now?.finished_at) return resultOf(now);
    }
    throw await failureOf(deps, row, run, work, attempt.signal.aborted ? attempt.signal.reason : error);
  } finally {
    metrics.active.dec();
    await attempt.close();
  }
}

const resultOf = (run: RunRow | undefined): ExportIntervalResult => ({
  status: run?.status ?? 'Cancelled',
  records: run?.records_completed ?? 0,
  rejected: run?.records_failed ?? 0,
  bytes: run?.bytes_exported ?? 0,
  error: run?.latest_error ?? null,
});

/**
 * The result, with a notice if the run completed and left out many rows, and the one before it did not. The attempt that
 * completed it may have been killed right after that, so this looks at the rows.
 */
async function toldResult(
  { pool, noticeWebhook, logger }: RunDependencies,
  run: RunRow | undefined,
): Promise<ExportIntervalResult> {
  const result = resultOf(run);
  if (run?.status !== 'Completed' || noticeWebhook === undefined || !leavesMuchOut(run)) return result;
  try {
    const before = await completedBefore(pool, run);
    if (before && leavesMuchOut(before)) return result;
  } catch (err) {
    // The run is complete, whatever becomes of the notice: rather twice than never.
    logger.warn({ err, runId: run.id }, 'the run before this one could not be read');
  }
  const details = { rows: run.records_completed, left_out: run.records_failed };
  const about = { projectId: run.project_id, exportId: run.batch_export_id, runId: run.id };
  return {
    ...result,
    notices: [{ event: 'batch_export.rows_left_out', ...about, at: run.finished_at as string, details }],
  };
}

/** Ends the run if its export is deleted. Whoever deleted the export may have died before cancelling its runs. */
async function endWithExport(
  { pool }: RunDependencies,
  row: BatchExportRow | undefined,
  runId: string,
): Promise<void> {
  if (!row?.deleted_at) return;
  const run = { project_id: row.project_id, id: runId, batch_export_id: row.id };
  await transaction(pool, (client) => endRun(client, run, EXPORT_DELETED));
}

interface Carried {
  transferred: Transferred;
  /** What happened on the way, for the log. */
  said: LogEntry[];
}

async function carry(
  { pool, copyPool, compiler, cohortStates, eventRetentionDays, ...deps }: RunDependencies,
  row: BatchExportRow,
  run: RunRow,
  attempt: WaitingAttempt,
): Promise<Carried> {
  const interval = { start: run.data_interval_start, end: run.data_interval_end };
  const destination = boundDestination(deps, row);
  const { start, end } = readInterval(interval);
  const query = await exportQuery(compiler, row, { start, end });
  const over = attempt.onWait('the last transactions that store events of the interval');
  await untilFinal(pool, end, { signal: attempt.signal, moved: attempt.stillWaits }).finally(over);
  await requireCohorts({ pool, cohortStates }, row.project_id, query);
  requireUnexpired(row, interval, eventRetentionDays, Date.now());
  const work = destinationRun(row, run.id, interval);
  const trace = traceOf({ pool, keyring: deps.keyring }, row, run, attempt.signal);
  const transferred = await transfer({ copyPool, query, destination, run: work, attempt, trace });
  if (destination.kind !== 'files') return { transferred, said: [] };
  await leaveNoPart(pool, destination, work, run, attempt);
  return { transferred, said: await takeBackParts(pool, destination, work, run, attempt) };
}

/** Writes down that the run is completed, with its log. Throws an OvertakenError if it was ended meanwhile. */
async function complete(
  { pool }: RunDependencies,
  { project_id: projectId, id: exportId }: BatchExportRow,
  { id: runId, fence }: RunRow,
  { transferred, said }: Carried,
  place: Place | undefined,
): Promise<RunRow> {
  return transaction(pool, async (client) => {
    const { totals } = transferred;
    const completed = await completeRun(client, { projectId, runId }, fence, totals, place?.fence);
    if (!completed) throw new OvertakenError('The run was ended while it was being completed');
    await endTrace(client, { exportId, fence });
    await insertLogs(client, { projectId, exportId }, runId, [...said, ...closingWords(transferred)]);
    return completed;
  });
}

const count = (number: number, what: string) => `${number} ${what}${number === 1 ? '' : 's'}`;

function closingWords({ totals, rejections }: Transferred): LogEntry[] {
  const { records_completed: rows, records_failed: rejected, bytes_exported: bytes } = totals;
  const left = rejections.map((one) => ({ level: 'WARNING' as const, message: `Left out ${one}` }));
  if (rejected > rejections.length) {
    const more = `${rejected - rejections.length} more rows were left out`;
    left.push({ level: 'WARNING', message: more });
  }
  if (leavesMuchOut(totals)) {
    const share = percent(shareLeftOut(totals));
    const message = `${share} of the rows were left out: the destination does not fit them. Test it, correct what the entries above name, and retry the run`;
    left.push({ level: 'WARNING', message });
  }
  if (rows === 0 && rejected === 0) {
    const message = 'Batch export finished: there is no data in this interval that matches its settings';
    return [{ level: 'INFO', message }];
  }
  const done = `Batch export finished successfully with ${count(rows, 'record')} (${count(bytes, 'byte')})`;
  return [...left, { level: 'INFO', message: rejected > 0 ? `${done}; ${rejected} left out` : done }];
}

function observe({ metrics }: RunDependencies, row: BatchExportRow, run: RunRow): void {
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

/**
 * Judges the failure of an attempt and logs it. If another attempt follows, counts it and writes it into the row of the
 * run.
 */
async function failureOf(
  deps: RunDependencies,
  row: BatchExportRow,
  run: RunRow,
  work: WorkAttempt,
  error: unknown,
): Promise<AttemptFailedError> {
  const { keyring, logger, metrics, rhythm } = deps;
  const judged = judge(error);
  // A server may answer with a message of any length. Temporal refuses one that is too long, and the attempt would
  // never end.
  const message = storableText(withoutSecretsOf(keyring, row, judged.message), LONGEST_MESSAGE);
  const { again, reason } = judged;
  // An unexpected error may be a bug of Sluice, so the log has its stack.
  const about = reason === 'unexpected' ? { err: error } : { reason, message };
  const { number: attempt } = work;
  logger.warn({ exportId: row.id, runId: run.id, attempt, again, ...about }, 'an attempt at a run failed');
  if (again) {
    metrics.retries.inc({ destination: row.destination_type, reason });
    await sayTrouble(deps, row, run, work, message);
  }
  const retryAfterMilliseconds = judged.retryAfterMilliseconds ?? rhythm?.pause?.(attempt);
  return new AttemptFailedError({ ...judged, message, retryAfterMilliseconds }, attempt);
}

/** Removes secrets from the message of an error, which may come from any library or server. */
function withoutSecretsOf(keyring: RunDependencies['keyring'], row: BatchExportRow, message: string): string {
  try {
    const { type, config } = openSettings(keyring, row);
    const fields = findDestination(type)?.fields;
    return fields ? withoutSecrets(message, secretValues(fields, config)) : message;
  } catch {
    // The secrets cannot be opened, so no message has them.
    return message;
  }
}

/**
 * Writes down what an attempt waits for, in the row of its run and, once for each wait of its kind, in its log. If
 * Postgres itself fails, there is nobody to tell.
 */
function waitSayer(
  { pool, keyring, logger }: RunDependencies,
  row: BatchExportRow,
  { id: runId, fence }: RunRow,
): (waitsFor: string | null) => Promise<void> {
  const { project_id: projectId, id: exportId } = row;
  const logged = new Set<string>();
  return async (waitsFor) => {
    const message =
      waitsFor === null
        ? null
        : `Waits for ${withoutSecretsOf(keyring, row, waitsFor)}`.slice(0, LONGEST_MESSAGE);
    try {
      const isMine = await recordTrouble(pool, { projectId, runId }, fence, message);
      if (!isMine || message === null || logged.has(message)) return;
      logged.add(message);
      logger.info({ exportId, runId, message }, 'an attempt at a run waits');
      await insertLogs(pool, { projectId, exportId }, runId, [{ level: 'INFO', message }]);
    } catch (error) {
      logger.debug({ err: error, runId }, 'what an attempt waits for could not be stored');
    }
  };
}

/** Writes down why this attempt failed. If Postgres itself fails, the reason is still in Temporal. */
async function sayTrouble(
  { pool, logger }: RunDependencies,
  { project_id: projectId, id: exportId }: BatchExportRow,
  { id: runId, fence }: RunRow,
  { number }: WorkAttempt,
  message: string,
): Promise<void> {
  const entry = `Attempt ${number} failed and will be repeated: ${message}`;
  try {
    const isMine = await recordTrouble(pool, { projectId, runId }, fence, message);
    if (isMine)
      await insertLogs(pool, { projectId, exportId }, runId, [{ level: 'WARNING', message: entry }]);
  } catch (error) {
    logger.debug({ err: error, runId }, 'the error of an attempt could not be stored');
  }
}
