import { type Pool, transaction } from '../../db/pool.ts';
import type { BoundFiles } from '../../destinations/bind.ts';
import type { Run } from '../../destinations/destination.ts';
import { DestinationError } from '../../destinations/errors.ts';
import { endRun } from '../ending.ts';
import type { LogEntry } from '../rows/logs.ts';
import { forgetManifest, isPartEnd, listPartRuns } from '../rows/parts.ts';
import { findRun } from '../rows/run-lists.ts';
import type { RunRow } from '../rows/runs.ts';
import { type Attempt, OvertakenError } from './attempt.ts';
import type { WaitingAttempt } from './waiting.ts';

/**
 * Removes the files of parts of an interval. "Run now" exports a part before the interval has ended, and the files of
 * the whole interval contain the same rows. Call it when the latter are at the destination. Stops a part that is still
 * being exported. Returns log entries, also for files that it could not remove: that fails no run.
 */
export async function takeBackParts(
  pool: Pool,
  destination: BoundFiles,
  run: Run,
  row: RunRow,
  attempt: WaitingAttempt,
): Promise<LogEntry[]> {
  if (row.data_interval_start === null) return [];
  const key = { projectId: run.projectId, exportId: run.exportId };
  const whole = { start: row.data_interval_start, end: row.data_interval_end };
  const said: LogEntry[] = [];
  for (const listed of await listPartRuns(pool, key, whole)) {
    const part = await stopPart(pool, listed, run.runId);
    const interval = { start: run.interval.start, end: Date.parse(part.data_interval_end) };
    const files = `the files of the part up to ${part.data_interval_end}, whose rows are also in the files of this run`;
    try {
      const there = await destination.takeBack(
        { ...run, runId: part.id, interval },
        { fence: attempt.fence, onWait: attempt.onWait, manifestKey: part.manifest_key },
      );
      await forgetManifest(pool, { projectId: run.projectId, runId: part.id });
      if (there) {
        said.push({ level: 'INFO', message: `Removed ${files}` });
      } else if (part.manifest_key !== null) {
        const reason = 'they are not where this export writes now';
        said.push({ level: 'WARNING', message: `Did not remove ${files}: ${reason}` });
      }
    } catch (error) {
      if (!(error instanceof DestinationError)) throw error;
      said.push({ level: 'WARNING', message: `Could not remove ${files}: ${error.message}` });
    }
  }
  return said;
}

/** Ends the run of a part if it is in progress. Returns the run as it ended. */
async function stopPart(pool: Pool, part: RunRow, runId: string): Promise<RunRow> {
  if (part.finished_at !== null) return part;
  const reason = `The run ${runId} has exported the rows of this part of its interval`;
  const stopped = await transaction(pool, (client) => endRun(client, part, { status: 'Cancelled', reason }));
  if (stopped) return stopped;
  // The run ended by itself meanwhile.
  return (await findRun(pool, { projectId: part.project_id, runId: part.id })) ?? part;
}

/**
 * Checks that a part is still wanted. Call it when the files of the part are at the destination. If the run was ended
 * while they were made visible, because a longer run has their rows or somebody cancelled it, nobody else removes them.
 * Then this removes them, and throws.
 */
export async function leaveNoPart(
  pool: Pool,
  destination: BoundFiles,
  run: Run,
  row: RunRow,
  attempt: Attempt,
): Promise<void> {
  if (row.data_interval_start === null || !isPartEnd(row.data_interval_end)) return;
  try {
    await attempt.fence();
  } catch (error) {
    const now = await findRun(pool, { projectId: run.projectId, runId: run.runId });
    const isEnded = now?.finished_at && now.status !== 'Completed';
    if (error instanceof OvertakenError && isEnded) await destination.takeBack(run);
    throw error;
  }
}
