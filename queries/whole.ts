import type { Pool } from '../db/pool.ts';
import type { Column } from '../formats/columns.ts';
import { refuse } from '../refusals.ts';
import type { QueryCompiler } from './compiler.ts';
import { readJob } from './reads/job.ts';
import { QueryError } from './rules/request.ts';

export interface WholeQueryDependencies {
  pool: Pool;
  queryCompiler: Pick<QueryCompiler, 'compileFile'>;
}

/**
 * Compiles whole queries for those that write all rows of their results somewhere else. The caller keeps the turns of
 * projects. Its function throws a Refusal that names the field `hogql_query`.
 */
export const compilesWhole =
  ({ pool, queryCompiler }: WholeQueryDependencies) =>
  async (
    { projectId, hogql, now }: { projectId: number; hogql: string; now: number },
    signal?: AbortSignal,
  ): Promise<{ select: string; columns: Column[] }> => {
    const job = await readJob(pool, projectId, { kind: 'HogQLQuery', query: hogql }, now);
    try {
      return await queryCompiler.compileFile(job, 'file', signal);
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      throw refuse.invalid('hogql_query', error.message, { reason: error.excerpt });
    }
  };
