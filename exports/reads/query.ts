import { columnsOfType } from '../../destinations/registry.ts';
import type { OpenInterval } from '../../intervals/index.ts';
import type { ModelCompiler, ModelQuery, Source } from '../../models/index.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';

/** The columns that decide what an export selects. A new export without a model has the one that its query names. */
export interface ExportQueryRow
  extends Pick<
    BatchExportRow,
    'project_id' | 'destination_type' | 'config' | 'timezone' | 'filters' | 'hogql_query'
  > {
  model: Source | null;
}

const names = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : [];

/** Builds the query for the rows of an interval. Throws a ModelError if the settings of the export are invalid. */
export function exportQuery(
  compiler: ModelCompiler,
  row: ExportQueryRow,
  interval: OpenInterval,
): Promise<ModelQuery> {
  return compiler.query({
    model: row.model,
    projectId: row.project_id,
    interval,
    columnSet: columnsOfType(row.destination_type),
    timezone: row.timezone,
    includeEvents: names(row.config.include_events),
    excludeEvents: names(row.config.exclude_events),
    filters: row.filters,
    hogqlQuery: row.hogql_query,
  });
}
