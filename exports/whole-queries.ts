// Whole queries as sources of exports. `queries/` compiles them; whoever puts the process together hands that in.
import type { Column } from '../formats/columns.ts';
import {
  CompilerBusyError,
  type ModelCompiler,
  ModelError,
  type ModelQuery,
  queryOfModel,
  requireEvents,
  rulesOf,
  WHOLE_QUERY,
} from '../models/index.ts';
import { Refusal } from '../refusals.ts';

/** A query of a project, as a SELECT whose rows COPY can write. */
export interface WholeQuery {
  select: string;
  columns: readonly Column[];
}

/**
 * Compiles a query of a project. `now` is the time that the query gets from `now()`, in milliseconds since 1970. Throws a
 * Refusal if the query is wrong, or if there is no time for it at the moment.
 */
export type CompileWholeQuery = (
  query: { projectId: number; hogql: string; now: number },
  signal?: AbortSignal,
) => Promise<WholeQuery>;

export interface WholeQueryOptions {
  compile: CompileWholeQuery;
  /** How long Postgres may work for one. Waiting for the destination counts. */
  seconds: number;
}

/** Adds whole queries to a compiler of models. */
export const withWholeQueries = (
  compiler: ModelCompiler,
  { compile, seconds }: WholeQueryOptions,
): ModelCompiler => ({
  close: () => compiler.close(),
  async query(options, signal): Promise<ModelQuery> {
    const { model, projectId, hogqlQuery, filters, interval } = options;
    if (model !== WHOLE_QUERY) return compiler.query(options, signal);
    if (!hogqlQuery) {
      throw new ModelError('hogql_query', "A batch export that runs 'once' needs the query that it exports");
    }
    if (Array.isArray(filters) ? filters.length > 0 : (filters ?? null) !== null) {
      requireEvents('filters', rulesOf(model), (message) => new ModelError('filters', message));
    }
    const query = { projectId, hogql: hogqlQuery, now: interval.end };
    const { select, columns } = await compile(query, signal).catch((error: unknown) => {
      throw faultOf(error);
    });
    // The query may take long before its first row, so it has a limit of its own.
    const settings = { statement_timeout: `${seconds}s` };
    return queryOfModel({ projectId, model, select, columns, settings });
  },
});

function faultOf(error: unknown): unknown {
  if (!(error instanceof Refusal)) return error;
  if (error.kind === 'crowded' || error.kind === 'unavailable') return new CompilerBusyError(error.message);
  return new ModelError('hogql_query', `Invalid HogQL query: ${error.message}`, error.reason ?? null);
}
