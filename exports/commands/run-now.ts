import { transaction } from '../../db/pool.ts';
import { intervalAt } from '../../intervals/index.ts';
import { Refusal, refuse } from '../../refusals.ts';
import { type Actor, requestOf } from '../../tenancy/actor.ts';
import { instantText } from '../../values/dates.ts';
import { type BatchExportRow, keyOf } from '../rows/batch-exports.ts';
import { isPartEnd } from '../rows/parts.ts';
import { cadenceOfRow } from '../rules/cadence.ts';
import { type IntervalChoice, pickCompleteInterval } from '../rules/pick-interval.ts';
import { temporalAway } from '../temporal.ts';
import { auditExport } from './audit.ts';
import type { ExportCommandDependencies } from './dependencies.ts';
import { hasRows } from './preview.ts';

const RETRY_SECONDS = 10;
/** How long Temporal may take to start a run, in milliseconds. */
const PATIENCE = 5_000;

export interface RunInput extends IntervalChoice {
  /**
   * Whether to export the current interval up to now. When the interval has ended, the schedule replaces these files.
   * Default: yes, if no interval is named and the last finished one has no rows.
   */
  partial?: boolean | undefined;
}

export interface ImmediateRun {
  interval: { start: string; end: string };
  workflowId: string;
  workflowRunId: string;
}

/** Returns the end of a part of an interval. A part is known by its end, at which no interval ends. */
const endOfPart = (now: number) => (isPartEnd(new Date(now).toISOString()) ? now : now - 1);

/**
 * Runs an export now, whatever its schedule does. Exports the interval that is named, or else the last finished one.
 */
export async function runExport(
  deps: Pick<ExportCommandDependencies, 'pool' | 'reader' | 'compiler' | 'compiling' | 'temporal' | 'logger'>,
  actor: Actor,
  row: BatchExportRow,
  input: RunInput,
  signal?: AbortSignal,
): Promise<ImmediateRun> {
  const { pool, temporal, logger } = deps;
  const now = Date.now();
  const named = Boolean(input.start_at || input.end_at);
  if (input.partial && named) {
    throw refuse.invalid(
      'partial',
      "'partial' exports the current interval up to now. Do not combine it with 'start_at' or 'end_at'.",
    );
  }
  const complete = pickCompleteInterval(row, input, now);
  const partial = input.partial ?? (!named && !(await hasRows(deps, row, complete, signal)));
  const { start, end } = partial
    ? { start: intervalAt(cadenceOfRow(row), now).start, end: endOfPart(now) }
    : complete;
  const interval = { start: instantText(start), end: instantText(end) };
  const started = await temporal
    .within(PATIENCE, () => temporal.startRun(row, interval, 'hand'))
    .catch((error) => {
      if (error instanceof Refusal) throw error;
      logger.warn({ ...requestOf(actor), err: error }, 'a run could not be started');
      throw temporalAway(RETRY_SECONDS);
    });
  await transaction(pool, (client) =>
    auditExport(client, actor, keyOf(row), 'started', {
      data_interval_start: interval.start,
      data_interval_end: interval.end,
    }),
  );
  return { interval, ...started };
}
