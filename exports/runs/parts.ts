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

/**
 * Takes back the files of parts of the interval. A part is exported before the interval is over ("run now"), and the
 * interval's own files have its rows too. Call it when those files are there. A part that is still being exported is
 * stopped. This fails no run: what cannot be taken back is told in the entries that it returns.
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

/** Ends the run of a part, and returns it as it is when nobody works on it any more. */
async function stopPart(pool: Pool, part: RunRow, runId: string): Promise<RunRow> {
  if (part.finished_at !== null) return part;
  const reason = `The run ${runId} has exported what this part of its interval has`;
  const stopped = await transaction(pool, (client) => endRun(client, part, { status: 'Cancelled', reason }));
  if (stopped) return stopped;
  // It came to its own end meanwhile.
  return (await findRun(pool, { projectId: part.project_id, runId: part.id })) ?? part;
}

/**
 * Call it when the files of a part are there. If the part was stopped while they were made visible, because a longer run
 * has their rows or somebody cancelled it, nobody else takes them back: this does, and throws.
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
