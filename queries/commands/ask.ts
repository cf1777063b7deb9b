import type { Pool } from '../../db/pool.ts';
import type { Asker, Turns } from '../../db/turns.ts';
import type { ActionStep } from '../../properties/index.ts';
import type { QueryCompiler } from '../compiler.ts';
import { readJob } from '../reads/job.ts';
import { explainRows, type QueryTime, readRows } from '../reads/rows.ts';
import type {
  CompiledFile,
  CompiledQuery,
  FileForm,
  OutputColumn,
  QueryJob,
  QueryRequest,
} from '../rules/request.ts';
import { refusing } from './refusing.ts';

export interface QueryDependencies {
  pool: Pool;
  /** Sees the rows of one project at a time. */
  reader: Pool;
  queryCompiler: QueryCompiler;
  /** The turns of projects at the compilers. */
  compiling: Turns;
  /** The steps of an action. Undefined: the project has no such action. */
  actionSteps(projectId: number, actionId: number): Promise<readonly ActionStep[] | undefined>;
}

/** What a query found. */
export interface QueryAnswer {
  columns: readonly OutputColumn[];
  /** The values as JSON texts. Null: the value is missing. */
  rows: (string | null)[][];
  page: CompiledQuery['page'];
  place: CompiledQuery['place'];
  /** Whether there are more rows than the page has. Null: the query says itself how many it wants. */
  hasMore: boolean | null;
  hogql: string;
  /** The lines of Postgres' plan, if they were asked for. */
  plan: string[] | null;
  /** Seconds by what they were spent for. */
  timings: { k: string; t: number }[];
}

/** Answers a query of any kind. Throws a refusal if the query is wrong. */
export async function ask(
  deps: QueryDependencies,
  asker: Asker,
  request: QueryRequest,
  { explain = false, time }: { explain?: boolean; time?: QueryTime } = {},
): Promise<QueryAnswer> {
  return refusing(async () => {
    const begin = performance.now();
    const compiled = await compile(deps, asker, request);
    const read = performance.now();
    const plan = explain ? await explainRows(deps.reader, asker, compiled, time) : null;
    const { rows, waited, ran } = await readRows(deps.reader, asker, compiled, time);
    const { page, place, columns, hogql } = compiled;
    const hasMore = page === null ? null : rows.length > page.limit;
    if (page && hasMore) rows.length = page.limit;
    const timings = [
      { k: 'compile', t: (read - begin) / 1000 },
      { k: 'wait', t: waited / 1000 },
      { k: 'run', t: ran / 1000 },
    ];
    return { columns, rows, page, place, hasMore, hogql, plan, timings };
  });
}

/** Compiles a query for the project of whoever asks. */
export const compile = async (
  deps: QueryDependencies,
  asker: Asker,
  request: QueryJob['request'],
): Promise<CompiledQuery> => {
  const job = await jobOf(deps, asker, request);
  return deps.compiling.take(asker, () => deps.queryCompiler.compile(job, asker.signal));
};

/** The same for a query whose rows are written to a file. */
export const compileFile = async (
  deps: QueryDependencies,
  asker: Asker,
  request: QueryJob['request'],
  form: FileForm,
): Promise<CompiledFile> => {
  const job = await jobOf(deps, asker, request);
  return deps.compiling.take(asker, () => deps.queryCompiler.compileFile(job, form, asker.signal));
};

/** What a query of a project is compiled from. */
async function jobOf(
  deps: QueryDependencies,
  { projectId }: Asker,
  request: QueryJob['request'],
): Promise<Omit<QueryJob, 'form'>> {
  const job = await readJob(deps.pool, projectId, request, Date.now());
  const actionId = 'actionId' in request ? request.actionId : null;
  const actionSteps = actionId ? await deps.actionSteps(projectId, actionId) : undefined;
  return { ...job, actionSteps };
}
