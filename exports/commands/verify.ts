import { type IntervalText, intervalText } from '../../intervals/index.ts';
import { Refusal, refuse } from '../../refusals.ts';
import { type Actor, requestOf } from '../../tenancy/actor.ts';
import { newestExported } from '../reads/newest-exported.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';
import { findRun } from '../rows/run-lists.ts';
import { isOnce, onceRange } from '../rules/once.ts';
import { type IntervalChoice, pickCompleteInterval } from '../rules/pick-interval.ts';
import type { VerifyReport } from '../rules/verify-report.ts';
import { temporalAway } from '../temporal.ts';
import type { ExportCommandDependencies } from './dependencies.ts';

const RETRY_SECONDS = 5;
/** How long to wait for a verification while Temporal is known to be away, in milliseconds. */
const SHORT_PATIENCE = 1_000;

export interface VerifyInput extends IntervalChoice {
  /** The run whose interval is verified. It cannot be combined with the other fields. */
  run_id?: string | null | undefined;
}

/** Finds the interval to verify: that of the named run, the named interval, or else the newest exported one. */
export async function intervalToVerify(
  { pool }: Pick<ExportCommandDependencies, 'pool'>,
  row: BatchExportRow,
  { run_id: runId, ...choice }: VerifyInput,
): Promise<IntervalText> {
  const now = Date.now();
  const named = Boolean(choice.start_at || choice.end_at);
  if (runId) {
    if (named) throw refuse.invalid('run_id', "Do not combine 'run_id' with 'start_at' or 'end_at'.");
    const run = await findRun(pool, { projectId: row.project_id, runId });
    if (run?.batch_export_id !== row.id) {
      throw refuse.invalid('run_id', 'This batch export has no such run.', { code: 'does_not_exist' });
    }
    return intervalText({ start: run.data_interval_start, end: run.data_interval_end });
  }
  if (isOnce(row) && !named) return intervalText(onceRange(row));
  const newest = named ? undefined : await newestExported(pool, row, now);
  return newest ?? intervalText(pickCompleteInterval(row, choice, now));
}

/**
 * Compares what an export left at its destination for an interval with its manifest and the database. Undefined: the
 * wait was too short; calling this again joins the same verification.
 */
export async function verifyExport(
  { temporal, logger }: Pick<ExportCommandDependencies, 'temporal' | 'logger'>,
  actor: Actor,
  row: BatchExportRow,
  interval: IntervalText,
  { waitMilliseconds }: { waitMilliseconds: number },
): Promise<VerifyReport | undefined> {
  const wait = temporal.isReachable() ? waitMilliseconds : SHORT_PATIENCE;
  const report = await temporal
    .within(wait, () => temporal.verify(row, interval, { waitMilliseconds: wait }))
    .catch((error) => {
      if (error instanceof Refusal) throw error;
      logger.warn({ ...requestOf(actor), err: error }, 'a verification could not be started');
      throw temporalAway(RETRY_SECONDS);
    });
  if (!report && !temporal.isReachable()) throw temporalAway(RETRY_SECONDS);
  return report;
}
