import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { z } from 'zod';
import type { Pool } from '../../db/pool.ts';
import type { AnswerQuery } from '../../queries/background/runner.ts';
import { ask, type QueryDependencies } from '../../queries/commands/ask.ts';
import { cancelBackground, showBackground } from '../../queries/commands/background.ts';
import { AT_ONCE, type QueryTime } from '../../queries/reads/rows.ts';
import { type BackgroundRow, partsOf } from '../../queries/rows/background.ts';
import { MOST_SECONDS } from '../../queries/rules/request.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { sendPieces } from '../pieces.ts';
import { answerTexts } from './answer.ts';
import { distinctIdsOf } from './distinct-ids.ts';
import { failedQuery, queryStatus } from './query-schema.ts';

/** How long Postgres may work for a query for which nobody waits. */
const IN_BACKGROUND: QueryTime = { ...AT_ONCE, seconds: MOST_SECONDS.inBackground };
const RETRY_SECONDS = '1';

/** Answers queries in the background as the route of queries answers them at once. */
export const answersInBackground =
  (deps: Omit<QueryDependencies, 'reader'>, reader: Pool): AnswerQuery =>
  async (projectId, { query, explain }, signal) => {
    const options = { explain, time: IN_BACKGROUND };
    const answer = await ask({ ...deps, reader }, { projectId, signal }, query, options);
    return answerTexts(answer, query.kind, await distinctIdsOf(deps.pool, projectId, answer));
  };

/** A query in the background as clients see it, without its results. */
export const shownStatus = (row: BackgroundRow) => ({
  ...{ id: row.id, team_id: row.project_id, query_async: true as const },
  complete: row.finished_at !== null,
  error: row.error !== null,
  error_message: row.error?.message ?? null,
  ...{ start_time: row.created_at, pickup_time: row.started_at, end_time: row.finished_at },
  expiration_time: row.expires_at,
});

/** The status of a query that is completed, with its stored answer. If that is deleted meanwhile, this throws. */
async function* statusTexts(pool: Pool, row: BackgroundRow, result: string): AsyncGenerator<string | Buffer> {
  yield `{"query_status":${JSON.stringify(shownStatus(row)).slice(0, -1)},"results":`;
  const parts = Readable.from(partsOf(pool, row.project_id, result));
  // Its error reaches whoever reads the texts.
  yield* pipeline(parts, createGunzip(), () => undefined) as AsyncIterable<Buffer>;
  yield '}}';
}

/** Adds the routes of queries in the background. */
export function backgroundRoutes(app: App, deps: ApiDependencies): void {
  const path = '/api/projects/:project_id/query/:query_id/';
  const params = z.object({ project_id: z.string(), query_id: z.string() });

  app.get(
    path,
    {
      config: { access: { scope: 'query:read' } },
      schema: {
        tags: ['query'],
        summary: 'Show a query in the background',
        description:
          'Answers 202 until the query has ended, then 200 with its results, or 400 if it failed. Queries can be asked for ' +
          'for an hour.',
        params,
        response: { 200: queryStatus, 202: queryStatus, 400: failedQuery },
      },
    },
    async (request, reply) => {
      const row = await showBackground(deps, request.project.id, request.params.query_id);
      if (row.result !== null) {
        reply.type('application/json; charset=utf-8');
        return sendPieces(reply, statusTexts(deps.pool, row, row.result), deps.takeMilliseconds);
      }
      const query_status = { ...shownStatus(row), results: null };
      if (row.error) {
        const { message: detail, attr, reason } = row.error;
        const why = { type: 'validation_error' as const, code: 'invalid_input', detail, attr };
        return reply.code(400).send({ ...why, ...(reason !== null && { reason }), query_status });
      }
      return reply.code(202).header('retry-after', RETRY_SECONDS).send({ query_status });
    },
  );

  app.delete(
    path,
    {
      config: { access: { scope: 'query:read' } },
      schema: {
        tags: ['query'],
        summary: 'Cancel a query in the background, or delete its results',
        params,
        response: { 200: z.object({ message: z.string() }) },
      },
    },
    async (request) => {
      await cancelBackground(deps, request.project.id, request.params.query_id);
      return { message: 'The query is cancelled, and its results are deleted.' };
    },
  );
}
