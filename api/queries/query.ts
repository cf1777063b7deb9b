import { Readable } from 'node:stream';
import { z } from 'zod';
import { stepsOf } from '../../actions/reads/steps-of.ts';
import { firstDistinctIds } from '../../db/persons.ts';
import { ask, type QueryDependencies } from '../../queries/commands/ask.ts';
import { askerOf } from '../asker.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { SHOWN_IN_LIST } from '../people/person-schema.ts';
import { answerTexts, type DistinctIds, shownPersons } from './answer.ts';
import { queryAnswer, queryBody } from './query-schema.ts';

/** What queries need of the API. */
export const queryDependencies = (deps: ApiDependencies): QueryDependencies => ({
  pool: deps.pool,
  reader: deps.reader,
  queryCompiler: deps.queryCompiler,
  compiling: deps.compiling,
  actionSteps: async (projectId, actionId) => (await stepsOf(deps.pool, projectId, [actionId])).get(actionId),
});

/** Adds the route that answers queries. */
export function queryRoutes(app: App, deps: ApiDependencies): void {
  const commands = queryDependencies(deps);

  async function distinctIdsOf(projectId: number, persons: readonly string[]): Promise<DistinctIds> {
    const ids = persons.map((one) => JSON.parse(one) as string);
    const found =
      ids.length > 0 ? await firstDistinctIds(deps.pool, projectId, ids, SHOWN_IN_LIST) : new Map();
    return new Map(persons.map((one, index) => [one, found.get(ids[index] as string) ?? []]));
  }

  app.post(
    '/api/projects/:project_id/query/',
    {
      config: { access: { scope: 'query:read' } },
      schema: {
        tags: ['query'],
        summary: 'Query events, persons, groups and sessions',
        description:
          'Answers a SELECT in HogQL, or a list of events or persons. A query may take 15 seconds, and its result 16 MiB.',
        params: z.object({ project_id: z.string() }),
        body: queryBody,
        response: { 200: queryAnswer },
      },
    },
    async (request, reply) => {
      const { query, explain } = request.body;
      const answer = await ask(commands, askerOf(request, reply), query, { explain });
      const distinctIds = await distinctIdsOf(request.project.id, shownPersons(answer));
      const texts = Readable.from(answerTexts(answer, query.kind, distinctIds));
      return reply.type('application/json; charset=utf-8').send(texts as never);
    },
  );
}
