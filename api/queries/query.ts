import { Readable } from 'node:stream';
import { z } from 'zod';
import { stepsOf } from '../../actions/reads/steps-of.ts';
import { ask, type QueryDependencies } from '../../queries/commands/ask.ts';
import { beginBackground } from '../../queries/commands/background.ts';
import { AT_ONCE, type QueryTime } from '../../queries/reads/rows.ts';
import { MOST_SECONDS } from '../../queries/rules/request.ts';
import { askerOf } from '../asker.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { answerTexts } from './answer.ts';
import { backgroundRoutes, shownStatus } from './background.ts';
import { distinctIdsOf } from './distinct-ids.ts';
import { queryAnswer, queryBody, queryStatus } from './query-schema.ts';

/** What `refresh` says where clients want an answer later. */
const LATER = new Set<unknown>(['force_async', 'async', 'lazy_async']);
/** Whoever waits for the answer can also ask for it later. */
const OR_LATER: QueryTime = {
  ...AT_ONCE,
  advice: `Choose a shorter range of time, add conditions, or ask with "async": true, which allows ${MOST_SECONDS.inBackground} seconds.`,
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

/** Adds the route that answers queries. */
export function queryRoutes(app: App, deps: ApiDependencies): void {
  const commands = queryDependencies(deps);

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
          '`/query/{id}/` for an hour.',
        params: z.object({ project_id: z.string() }),
        body: queryBody,
        response: { 200: queryAnswer, 202: queryStatus },
      },
    },
    async (request, reply) => {
      const { query, explain, client_query_id: id, refresh } = request.body;
      const { id: projectId } = request.project;
      if (request.body.async || LATER.has(refresh)) {
        const row = await beginBackground(deps, projectId, { query, explain }, id ?? undefined);
        return reply.code(202).send({ query_status: { ...shownStatus(row), results: null } });
      }
      const answer = await ask(commands, askerOf(request, reply), query, { explain, time: OR_LATER });
      const distinctIds = await distinctIdsOf(deps.pool, projectId, answer);
      const texts = Readable.from(answerTexts(answer, query.kind, distinctIds));
      return reply.type('application/json; charset=utf-8').send(texts as never);
    },
  );
  backgroundRoutes(app, deps);
}
