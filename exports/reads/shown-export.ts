import { shownSettings } from '../../destinations/settings.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';
import { cadenceOfRow } from '../rules/cadence.ts';

/**
 * The settings of an export that may be shown to whoever may see the export, under the names that the API has for them.
 * Without the secrets of the destination. The activity log compares two of these to tell what was changed.
 */
export function shownExport(row: BatchExportRow) {
  const { offsetDay, offsetHour } = cadenceOfRow(row);
  return {
    name: row.name,
    model: row.model,
    destination: shownSettings({ type: row.destination_type, config: row.config }),
    interval: row.interval,
    timezone: row.timezone,
    offset_day: row.interval === 'week' ? offsetDay : null,
    offset_hour: row.interval === 'week' || row.interval === 'day' ? offsetHour : null,
    paused: row.paused,
    last_paused_at: row.last_paused_at,
    start_at: row.start_at,
    end_at: row.end_at,
    hogql_query: row.hogql_query,
    schema: row.schema,
    filters: row.filters,
  };
}
