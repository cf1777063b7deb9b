import { build, type Expr, qualified } from '../hog/ast/index.ts';
import { SourceError } from '../hog/errors.ts';
import type { Parser } from '../hog/parser/index.ts';
import { FilterError, filterExpression, hogqlSources, readFilters } from '../properties/index.ts';
import type { Moment } from '../values/dates.ts';
import type { Model } from './model.ts';
import { ModelError } from './model-query.ts';
import { listed, namesOfModels } from './registry.ts';
import { misplaced } from './syntax-tree.ts';

const TYPES = ['cohort', 'event', 'hogql', 'person'];
const refused = (message: string) => new ModelError('filters', message);
const invalid = (reason: string) => refused(`One or more provided filters are invalid: ${reason}`);

/** Checks the form of an export's filters: a list of objects with known types, for models of events only. */
export function checkFilters(
  filters: unknown,
  model: Pick<Model, 'name' | 'isOfEvents'>,
): asserts filters is Record<string, unknown>[] | null {
  if (filters === null || filters === undefined) return;
  if (!Array.isArray(filters)) throw refused("'filters' should be an array of filters");
  for (const filter of filters) {
    if (typeof filter !== 'object' || filter === null || Array.isArray(filter)) {
      throw refused('Each filter must be an object');
    }
    if ('data_interval_start' in filter || 'data_interval_end' in filter) {
      throw refused(
        "'data_interval_start' and 'data_interval_end' are run attributes and not 'filters'. Trigger a backfill if you wish to manually control which periods to batch export.",
      );
    }
    if (!TYPES.includes(filter.type)) {
      throw refused(`Each filter must have a 'type' of one of: ${TYPES.map((one) => `'${one}'`).join(', ')}`);
    }
  }
  if (filters.length > 0) requireEvents('filters', model, refused);
}

/** Refuses what chooses among events for a model that has others. */
export function requireEvents(
  what: string,
  { name, isOfEvents }: Pick<Model, 'name' | 'isOfEvents'>,
  refusal: (message: string) => Error,
): void {
  if (isOfEvents) return;
  const possible = namesOfModels((one) => one.isOfEvents).map((one) => `'${one}'`);
  throw refusal(`'${what}' is only supported for ${listed(possible, 'and')} not '${name}' model`);
}

/** Builds one condition from all filters, with their table before every field. Returns null if there are no filters. */
export async function filterCondition(
  filters: unknown,
  model: Model,
  parser: Pick<Parser, 'expression'>,
  moment: Moment,
): Promise<Expr | null> {
  checkFilters(filters, model);
  if (filters === null || filters.length === 0) return null;
  try {
    const tree = readFilters(filters, { strict: true });
    const hogql = new Map<string, Expr>();
    for (const source of hogqlSources(tree)) hogql.set(source, await parser.expression(source));
    for (const expr of hogql.values()) {
      const wrong = misplaced(expr);
      if (wrong) throw invalid(`a filter must not contain ${wrong.what}`);
    }
    return qualified(filterExpression(tree, { moment, scope: 'events', hogql }), model.name);
  } catch (error) {
    if (error instanceof FilterError)
      throw invalid(error.path ? `${error.path}: ${error.message}` : error.message);
    if (error instanceof SourceError) throw sourceFault(error);
    throw error;
  }
}

/**
 * Turns an error in the text of a filter into a ModelError. A parser without time or room is not the fault of the
 * filter.
 */
export function sourceFault(error: SourceError): Error {
  return error.code === 'busy' ? error : invalid(error.message);
}

/** Builds the conditions `event in (…)` and `event not in (…)`. An empty list sets no condition. */
export function eventNames(model: Model, include: readonly string[], exclude: readonly string[]): Expr[] {
  const tuple = (names: readonly string[]): Expr => build.tuple(names.map((name) => build.constant(name)));
  const event = build.field(model.name, 'event');
  return [
    ...(include.length > 0 ? [build.compare('in', event, tuple(include))] : []),
    ...(exclude.length > 0 ? [build.compare('not in', event, tuple(exclude))] : []),
  ];
}
