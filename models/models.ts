import type { Parser } from '../hog/parser/index.ts';
import { checkFilters } from './filters.ts';
import { ModelError, type ModelQuery } from './model-query.ts';
import { DEFAULT_MODEL, modelOf } from './registry.ts';
import { type RowOptions, rowsQuery } from './rows.ts';
import { readSelection } from './selection.ts';
import { type Source, WHOLE_QUERY } from './source.ts';

export interface ModelOptions extends RowOptions {
  /** Null: the model that `hogqlQuery` names, or the default one. */
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
  if (options.model === WHOLE_QUERY) throw new Error('whole queries have a compiler of their own');
  const isChosen = hogqlQuery !== null && hogqlQuery !== undefined;
  const selected = isChosen ? await readSelection(hogqlQuery, parser, options.model) : null;
  const model = selected?.model ?? modelOf(options.model ?? DEFAULT_MODEL);
  if (!model.columns[columnSet]) {
    throw new ModelError('model', `The destination takes no rows of the model ${model.name}`);
  }
  checkFilters(filters ?? null, model);
  return rowsQuery(parser, model, options, selected);
}
