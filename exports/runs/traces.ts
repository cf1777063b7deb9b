// What attempts leave at destinations that take files. A request that a server has received cannot be called back, and
// a process can be killed between two steps. So each attempt writes down a trace before it writes anything, and whatever
// it left is removed when it is over.
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { type Pool, transaction } from '../../db/pool.ts';
import type { BoundFiles } from '../../destinations/bind.ts';
import type { Cleared } from '../../destinations/file-run.ts';
import { isUuid } from '../../values/uuid.ts';
import { keepSettings } from '../reads/settings.ts';
import { type BatchExportRow, findBatchExportById, keyOf } from '../rows/batch-exports.ts';
import { recordChecks } from '../rows/checks.ts';
import { insertLogs, type LogEntry } from '../rows/logs.ts';
import type { RunRow } from '../rows/runs.ts';
import {
  beginTrace,
  type ClaimedTrace,
  claimTrace,
  endTrace,
  extendLease,
  hasWritten,
  listDueTraces,
  markTrace,
  returnLease,
  type TraceKey,
} from '../rows/traces.ts';
import { OvertakenError } from './attempt.ts';
import type { RunDependencies } from './dependencies.ts';
import { boundDestination, type Trace } from './transfer.ts';
import { type Work, whileBeating } from './work.ts';

const MINUTE = 60_000;
/**
 * How long after the end of an attempt its destination is looked at, in milliseconds. S3 refuses requests that are older
 * than a quarter of an hour, so that nothing arrives after the last look.
 */
const LOOKS = [0, MINUTE, 5 * MINUTE, 20 * MINUTE, 60 * MINUTE] as const;
/** The pause after a look that failed, and how long looks that fail are repeated. */
const AFTER_FAILURE = 5 * MINUTE;
const GIVE_UP = 24 * 60 * MINUTE;
/** How long one look may take. */
const LONGEST_LOOK = MINUTE;
const LEASED = 500;

const AT_ONCE = 5;
const PER_PASS = 100;

/** Answers whether an export belongs to the same project as another one, so that their users may know of each other. */
export const mayNameFor =
  (pool: Pool, row: Pick<BatchExportRow, 'project_id'>) =>
  async (exportId: string): Promise<boolean> =>
    isUuid(exportId) && (await findBatchExportById(pool, exportId))?.project_id === row.project_id;

export function traceOf(
  { pool, keyring }: Pick<RunDependencies, 'pool' | 'keyring'>,
  row: BatchExportRow,
  run: RunRow,
  signal: AbortSignal,
): Trace {
  const interval = { start: run.data_interval_start, end: run.data_interval_end };
  return {
    async begin(manifestKey) {
      while (!(await beginTrace(pool, keepSettings(keyring, row), run, manifestKey))) {
        signal.throwIfAborted();
        await pause(LEASED, undefined, { signal }).catch(() => signal.throwIfAborted());
      }
    },
    onPublish: (marks) => markTrace(pool, { exportId: row.id, fence: run.fence }, marks),
    wrote: (manifestKey) => hasWritten(pool, row, interval, manifestKey),
    mayName: mayNameFor(pool, row),
  };
}

export type TraceDependencies = Pick<
  RunDependencies,
  'pool' | 'keyring' | 'egress' | 'exportRoot' | 'logger'
>;

/** Removes what ended attempts have left at their destinations. A step of maintenance. */
export async function removeLeftovers(
  deps: TraceDependencies,
  work: Work,
  now = Date.now(),
): Promise<number> {
  const due = await listDueTraces(deps.pool, new Date(now).toISOString(), PER_PASS);
  let removed = 0;
  for (let from = 0; from < due.length; from += AT_ONCE) {
    work.signal.throwIfAborted();
    const some = due.slice(from, from + AT_ONCE);
    const counts = await whileBeating(work, () =>
      Promise.all(some.map((one) => clearUp(deps, one, work.signal))),
    );
    for (const count of counts) removed += count;
  }
  return removed;
}

/**
 * Removes what an attempt has left, if it is over and no run of its interval is in progress. Otherwise maintenance does
 * it later. Returns the number of removed files. Never throws.
 */
export async function clearUp(deps: TraceDependencies, key: TraceKey, signal?: AbortSignal): Promise<number> {
  const { pool, logger } = deps;
  const lease = randomUUID();
  try {
    const trace = await claimTrace(pool, key, lease);
    if (!trace) return 0;
    const over = Date.parse(trace.over_since as string);
    try {
      const enough = AbortSignal.timeout(LONGEST_LOOK);
      const cleared = await look(deps, trace, lease, signal ? AbortSignal.any([signal, enough]) : enough);
      await say(deps, trace, cleared);
      const looks = trace.looks + 1;
      const next = LOOKS[looks];
      if (next === undefined) await endTrace(pool, key);
      else await returnLease(pool, key, lease, { looks, nextLookAt: new Date(over + next).toISOString() });
      return cleared.removed.length;
    } catch (error) {
      logger.warn({ err: error, ...key }, 'what an ended attempt left could not be removed');
      const { message } = error as Error;
      if (Date.now() - over > GIVE_UP) await giveUp(deps, trace, message);
      const again = { looks: trace.looks, nextLookAt: new Date(Date.now() + AFTER_FAILURE).toISOString() };
      await returnLease(pool, key, lease, again);
      return 0;
    }
  } catch (error) {
    // Postgres is away. The trace stays, and its lease runs out.
    logger.debug({ err: error, ...key }, 'what an ended attempt left could not be looked at');
    return 0;
  }
}

/** A request that fails is repeated with the next look. */
const IMPATIENCE = { attempts: 1, delay: () => 0 };

async function look(
  deps: TraceDependencies,
  trace: ClaimedTrace,
  lease: string,
  signal: AbortSignal,
): Promise<Cleared> {
  const exportId = trace.batch_export_id;
  const key = { exportId, fence: trace.fence };
  const fence = async () => {
    signal.throwIfAborted();
    if (!(await extendLease(deps.pool, key, lease))) throw new OvertakenError('The lease has run out');
  };
  const destination = boundDestination({ ...deps, patience: IMPATIENCE }, { ...trace, id: exportId });
  return (destination as BoundFiles).clear(
    {
      exportId,
      runId: trace.run_id,
      manifestKey: trace.manifest_key,
      marks: trace.marks,
      hasEnded: trace.run_status !== null && trace.run_status !== 'Completed',
      completedRunId: trace.completed_run_id,
    },
    { signal, fence },
  );
}

/** Writes down what was removed, and that the interval is to be exported again if its files were damaged. */
async function say(
  { pool }: TraceDependencies,
  trace: ClaimedTrace,
  { removed, hasDamaged }: Cleared,
): Promise<void> {
  const row = await findBatchExportById(pool, trace.batch_export_id);
  if (!row || (removed.length === 0 && !hasDamaged)) return;
  const said: LogEntry[] = removed.map((name) => ({
    level: 'WARNING',
    message: `Removed ${name}, which an attempt at this run wrote that did not complete it`,
  }));
  const problem = `The run ${trace.run_id} replaced files of this interval, but did not complete it.`;
  if (hasDamaged) said.push({ level: 'WARNING', message: `${problem} The interval is exported again.` });
  await transaction(pool, async (client) => {
    await insertLogs(client, keyOf(row), trace.run_id, said);
    if (!hasDamaged) return;
    await recordChecks(client, [
      {
        ...keyOf(row),
        ...{ start: trace.data_interval_start, end: trace.data_interval_end, state: 'differs', problem },
        ...{ runId: trace.completed_run_id, sourceRows: null, contentHash: null, isDamaged: true },
      },
    ]);
  });
}

/** Forgets a trace whose destination could not be looked at for too long. */
async function giveUp({ pool }: TraceDependencies, trace: ClaimedTrace, reason: string): Promise<void> {
  const row = await findBatchExportById(pool, trace.batch_export_id);
  const message = `Files that an attempt at this run left at ${trace.manifest_key} could not be removed: ${reason}`;
  if (row) await insertLogs(pool, keyOf(row), trace.run_id, [{ level: 'WARNING', message }]);
  await endTrace(pool, { exportId: trace.batch_export_id, fence: trace.fence });
}
