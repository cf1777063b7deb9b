import type { BackfillRow } from '../../db/batch-export-backfills.ts';
import type { BatchExportRow } from '../../db/batch-exports.ts';
import type { ExportSchedules } from '../../schedules/exports/export-schedules.ts';

export interface BackfillSchedules {
  startBackfill(row: BatchExportRow, backfill: Pick<BackfillRow, 'id' | 'workflow_id'>): Promise<void>;
  cancelBackfill(backfill: Pick<BackfillRow, 'workflow_id'>): Promise<void>;
}

export const temporalOf = (schedules: { exports: ExportSchedules }) =>
  schedules.exports as ExportSchedules & BackfillSchedules;
