import { shownSettings } from '../../destinations/settings.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';
import { cadenceOfRow } from '../rules/cadence.ts';
import { isOnce } from '../rules/once.ts';

/**
 * Returns the settings of an export as the API shows them, without secrets. The activity log compares the settings
 * before and after a change.
 */
export function shownExport(row: BatchExportRow) {
  const { offsetDay, offsetHour } = isOnce(row) ? { offsetDay: null, offsetHour: null } : cadenceOfRow(row);
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
