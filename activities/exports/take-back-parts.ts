import type { Pool } from '../../db/pool.ts';
import type { BoundFiles } from '../../destinations/bind.ts';
import type { Run } from '../../destinations/destination.ts';
import { DestinationError } from '../../destinations/errors.ts';
import type { LogEntry } from '../../exports/rows/logs.ts';
import { forgetManifest, isPartEnd, listPartRuns } from '../../exports/rows/parts.ts';
import { findRun } from '../../exports/rows/run-lists.ts';
import { markRunEnded, type RunRow } from '../../exports/rows/runs.ts';
import { type Attempt, OvertakenError } from './attempt.ts';

/**
 * Files of a part of the interval that was exported before it was over ("run now") have rows that the interval's own
 * files have too: they are taken back once those are there, and who is still at work on one is stopped. It fails no run;
 * what stays is said.
 */
export async function takeBackParts(
  pool: Pool,
  destination: BoundFiles,
  run: Run,
  row: RunRow,
  attempt: Attempt,
): Promise<LogEntry[]> {
  if (row.data_interval_start === null) return [];
  const key = { projectId: run.projectId, exportId: run.exportId };
  const whole = { start: row.data_interval_start, end: row.data_interval_end };
  const said: LogEntry[] = [];
  for (const listed of await listPartRuns(pool, key, whole)) {
    const part = await stopPart(pool, listed, run.runId);
    const interval = { start: run.interval.start, end: new Date(part.data_interval_end) };
    const files = `The files of the part up to ${part.data_interval_end} have rows of this interval, too, and`;
    try {
      const there = await destination.takeBack(
        { ...run, runId: part.id, interval },
        { fence: attempt.fence, manifestKey: part.manifest_key },
      );
      await forgetManifest(pool, { projectId: run.projectId, runId: part.id });
      if (there) {
        const message = `Took back the files of the part up to ${part.data_interval_end}, whose rows these files have`;
        said.push({ level: 'INFO', message });
      } else if (part.manifest_key !== null) {
        const message = `${files} are not where this export writes now: what is left of them stays`;
        said.push({ level: 'WARNING', message });
      }
    } catch (error) {
      if (!(error instanceof DestinationError)) throw error;
      said.push({ level: 'WARNING', message: `${files} could not be taken back: ${error.message}` });
    }
  }
  return said;
}

/** The part as it is when nobody is at work on it any more. */
async function stopPart(pool: Pool, part: RunRow, runId: string): Promise<RunRow> {
  if (part.finished_at !== null) return part;
  const key = { projectId: part.project_id, runId: part.id };
  const reason = `The run ${runId} has exported what this part of its interval has`;
  const stopped = await markRunEnded(pool, key, 'Cancelled', reason);
  // Otherwise it came to its own end meanwhile.
  return stopped ?? (await findRun(pool, key)) ?? part;
}

/**
 * Asked when the files of a part are there: if it was stopped while they were made visible, because a longer run has
 * their rows or somebody cancelled it, nobody else takes them back.
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
