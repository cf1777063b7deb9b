import type { LogEntry } from '../../db/batch-export-logs.ts';
import { forgetManifest, listPartRuns } from '../../db/batch-export-run-lists.ts';
import type { RunRow } from '../../db/batch-export-runs.ts';
import type { Pool } from '../../db/pool.ts';
import type { BoundFiles } from '../../destinations/bind.ts';
import type { Run } from '../../destinations/destination.ts';
import { DestinationError } from '../../destinations/errors.ts';
import type { Attempt } from './attempt.ts';

/**
 * Files of a part of the interval that was exported before it was over ("run now") have rows that the interval's own
 * files have too: they are taken back once those are there. It fails no run; what stays is said.
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
  for (const part of await listPartRuns(pool, key, whole)) {
    const interval = { start: run.interval.start, end: new Date(part.data_interval_end) };
    try {
      await destination.takeBack({ ...run, runId: part.id, interval }, { fence: attempt.fence });
      await forgetManifest(pool, { projectId: run.projectId, runId: part.id });
      const message = `Took back the files of the part up to ${part.data_interval_end}, whose rows these files have`;
      said.push({ level: 'INFO', message });
    } catch (error) {
      if (!(error instanceof DestinationError)) throw error;
      const message = `The files of the part up to ${part.data_interval_end} have rows of this interval, too, and could not be taken back: ${error.message}`;
      said.push({ level: 'WARNING', message });
    }
  }
  return said;
}
