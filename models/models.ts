import type { Parser } from '../hog/parser/index.ts';
import { type EventOptions, eventsQuery } from './events.ts';
import { checkFilters } from './filters.ts';
import { type Model, ModelError, type ModelQuery } from './model-query.ts';
import { personsQuery } from './persons.ts';
import { sessionsQuery } from './sessions.ts';

export interface ModelOptions extends EventOptions {
  model: Model;
}

/**
 * Builds the statement that selects the rows of an interval of an export. Throws a ModelError if the settings are
 * invalid for every interval, so calling this also checks settings before they are saved.
 */
export async function modelQuery(parser: Parser, options: ModelOptions): Promise<ModelQuery> {
  const { model, projectId, interval, columnSet, hogqlQuery, filters } = options;
  if (model === 'events') return eventsQuery(parser, options);
  if (columnSet === 'http') {
    throw new ModelError('model', 'HTTP batch exports only support the events model');
  }
  checkFilters(filters ?? null, model);
  if (hogqlQuery !== null && hogqlQuery !== undefined) {
    throw new ModelError('hogql_query', `'hogql_query' is only supported for 'events' not '${model}' model`);
  }
  return model === 'persons'
    ? personsQuery(projectId, interval, columnSet)
    : sessionsQuery(projectId, interval);
}
