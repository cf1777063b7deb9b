import { type BoundFiles, type BoundRows, bindDestination } from '../../destinations/bind.ts';
import type { Run } from '../../destinations/destination.ts';
import { openSettings } from '../../exports/reads/settings.ts';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import type { IntervalText } from '../../intervals/index.ts';
import type { ExportDependencies } from '../dependencies.ts';

/** The destination of an export, with its secrets opened. */
export function boundDestination(
  { egress, exportRoot, patience, keyring }: ExportDependencies,
  row: BatchExportRow,
): BoundFiles | BoundRows {
  return bindDestination(openSettings(keyring, row), {
    egress,
    exportRoot,
    ...(patience ? { patience } : {}),
  });
}

/** A run as destinations know it. */
export function destinationRun(row: BatchExportRow, runId: string, { start, end }: IntervalText): Run {
  return {
    exportId: row.id,
    runId,
    projectId: row.project_id,
    model: row.model,
    interval: { start: start === null ? null : new Date(start), end: new Date(end) },
  };
}
