import { z } from 'zod';
import { stepsOf } from '../../actions/reads/steps-of.ts';
import { ask, type QueryDependencies } from '../../queries/commands/ask.ts';
import { beginBackground } from '../../queries/commands/background.ts';
import { type ResultDependencies, writeResult } from '../../queries/commands/write-result.ts';
import { AT_ONCE, type QueryTime } from '../../queries/reads/rows.ts';
import { MOST_SECONDS } from '../../queries/rules/request.ts';
import { askerOf, clientSignal } from '../asker.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { escapeFormulas, isTrue } from '../events/list-query.ts';
import { sendPieces, TAKE_MILLISECONDS } from '../pieces.ts';
import { answerTexts } from './answer.ts';
import { backgroundRoutes, shownStatus } from './background.ts';
import { distinctIdsOf } from './distinct-ids.ts';
import { format, queryAnswer, queryBody, queryStatus } from './query-schema.ts';
import { acceptedFormat, RESULT_TYPES, ResultFiles } from './result-file.ts';

/** What `refresh` says where clients want an answer later. */
const LATER = new Set<unknown>(['force_async', 'async', 'lazy_async']);
/** Whoever waits for the answer can also ask for it later. */
const OR_LATER: QueryTime = {
  ...AT_ONCE,
  advice: `Choose a shorter range of time, add conditions, or ask with "async": true, which allows ${MOST_SECONDS.inBackground} seconds.`,
};

/** An answer in JSON, or a file. */
const answers = {
  content: {
    'application/json': { schema: queryAnswer },
    ...Object.fromEntries(RESULT_TYPES.map((type) => [type, { schema: z.string() }])),
  },
};

/** What queries need of the API. */
export const queryDependencies = (
  deps: Pick<ApiDependencies, 'pool' | 'reader' | 'queryCompiler' | 'compiling'>,
): QueryDependencies => ({
  pool: deps.pool,
  reader: deps.reader,
  queryCompiler: deps.queryCompiler,
  compiling: deps.compiling,
  actionSteps: async (projectId, actionId) => (await stepsOf(deps.pool, projectId, [actionId])).get(actionId),
});

/** Refuses what only an answer in JSON can do. */
function refuseWithFile({ isLater, explain }: { isLater: boolean; explain: boolean }, format: string): void {
  if (isLater) {
    throw errors.validation(
      'invalid_input',
      `A file (${format}) is sent while it is made, and cannot be asked for later. Leave "async" and "refresh" out, or ask for JSON.`,
      'async',
    );
  }
  if (explain)
    throw errors.validation('invalid_input', 'Only an answer in JSON explains the query.', 'explain');
}

/** Adds the route that answers queries. */
export function queryRoutes(app: App, deps: ApiDependencies): void {
  const commands: ResultDependencies = {
    ...queryDependencies(deps),
    resultPool: deps.resultPool,
    resultPlaces: deps.resultPlaces,
    resultLimits: {
      seconds: deps.config.SLUICE_QUERY_FILE_SECONDS,
      bytes: deps.config.SLUICE_QUERY_FILE_BYTES,
    },
  };

  const files = new ResultFiles(deps.takeMilliseconds ?? TAKE_MILLISECONDS);
  app.addHook('preClose', async () => files.close());

  app.post(
    '/api/projects/:project_id/query/',
    {
      config: { access: { scope: 'query:read' } },
      schema: {
        tags: ['query'],
        summary: 'Query events, persons, groups and sessions',
        description:
          'Answers a SELECT in HogQL, or a list of events or persons. A query may take 15 seconds, and its result 16 MiB. With ' +
          '`async` it is answered in the background, and may take ten minutes: the answer is 202, and the results are at ' +
          '`/query/{id}/` for an hour. With `format`, or by `Accept`, the answer is a file with all rows, which is sent while it is made.',
        params: z.object({ project_id: z.string() }),
        querystring: z.object({ format: format.optional(), escape_formulas: escapeFormulas }),
        body: queryBody,
        response: { 200: answers, 202: queryStatus },
      },
    },
    async (request, reply) => {
      const { query, client_query_id: id, refresh } = request.body;
      const explain = request.body.explain || (query.kind === 'HogQLQuery' && query.explain === true);
      const { id: projectId } = request.project;
      const isLater = request.body.async || LATER.has(refresh);
      const format = request.query.format ?? request.body.format ?? acceptedFormat(request.headers.accept);
      if (format !== 'json') {
        refuseWithFile({ isLater, explain }, format);
        return files.send(request, reply, format, (outlet) => {
          const signal = AbortSignal.any([clientSignal(reply), outlet.signal]);
          const write = (bytes: Buffer) => outlet.write(bytes);
          const isSheet = format === 'csv' && isTrue(request.query.escape_formulas);
          const form = isSheet ? 'sheet' : 'file';
          return writeResult(commands, { projectId, signal }, query, { format, form, write });
        });
      }
      if (isLater) {
        const row = await beginBackground(deps, projectId, { query, explain }, id ?? undefined);
        return reply.code(202).send({ query_status: { ...shownStatus(row), results: null } });
      }
      const answer = await ask(commands, askerOf(request, reply), query, { explain, time: OR_LATER });
      const distinctIds = await distinctIdsOf(deps.pool, projectId, answer);
      reply.type('application/json; charset=utf-8');
      return sendPieces(reply, answerTexts(answer, query.kind, distinctIds), deps.takeMilliseconds);
    },
  );
  backgroundRoutes(app, deps);
}
