import type { Parser } from '../hog/parser/index.ts';
import { checkFilters } from './filters.ts';
import { ModelError, type ModelQuery, type Source } from './model-query.ts';
import { type RowOptions, rowsQuery } from './rows.ts';
import { readSelection } from './selection.ts';

export interface ModelOptions extends RowOptions {
  /** Null: the model that `hogqlQuery` names, or events. */
  model: Source | null;
  /** A query that selects columns and rows in place of the default ones. */
  hogqlQuery?: string | null;
}

/**
 * Builds the statement that selects the rows of an interval of an export. Throws a ModelError if the settings are
 * invalid for every interval, so calling this also checks settings before they are saved.
 */
export async function modelQuery(parser: Parser, options: ModelOptions): Promise<ModelQuery> {
  const { columnSet, hogqlQuery, filters } = options;
  if (options.model === 'hogql') throw new Error('whole queries have a compiler of their own');
  const isChosen = hogqlQuery !== null && hogqlQuery !== undefined;
  if (columnSet === 'http') {
    if (options.model !== null && options.model !== 'events') {
      throw new ModelError('model', 'HTTP batch exports only support the events model');
    }
    if (isChosen) {
      throw new ModelError(
        'hogql_query',
        "HTTP batch exports send events as they are: 'hogql_query' is not supported",
      );
    }
  }
  const selected = isChosen ? await readSelection(hogqlQuery, parser, options.model) : null;
  const model = selected?.model ?? options.model ?? 'events';
  checkFilters(filters ?? null, model);
  return rowsQuery(parser, model, options, selected);
}
