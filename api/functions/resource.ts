import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { mapInTurns } from '../../db/loop-turns.ts';
import { changeFunction } from '../../functions/commands/change.ts';
import { createFunction } from '../../functions/commands/create.ts';
import { saveDraft } from '../../functions/commands/draft.ts';
import { rearrangeFunctions } from '../../functions/commands/rearrange.ts';
import { findFunctions } from '../../functions/reads/found-functions.ts';
import type { ShownFunctionRow } from '../../functions/rows/functions.ts';
import { refuse } from '../../refusals.ts';
import { actorOf } from '../actor.ts';
import { clientSignal } from '../asker.ts';
import type { App } from '../dependencies.ts';
import { page, pageOf, paginated } from '../pagination.ts';
import type { FunctionRouteDependencies } from './dependencies.ts';
import { findsFunction } from './find-function.ts';
import {
  changedFunction,
  changeQuery,
  functionItem,
  functionItemView,
  functionView,
  hogFunction,
  isSet,
  newFunction,
  newOrders,
} from './function-schema.ts';
import { functionQuery, isFull, listQueryOf } from './list-query.ts';

export const PREFIX = '/api/projects/:project_id/hog_functions/';
const TAGS = ['functions'];
const params = z.object({ project_id: z.string() });
const functionParams = params.extend({ id: z.string() });
export const READ = 'hog_function:read';
export const WRITE = 'hog_function:write';

/** Makes what turns rows into answers. */
export const viewer =
  ({ template }: Pick<FunctionRouteDependencies, 'template'>) =>
  (row: ShownFunctionRow) =>
    functionView(row, row.template_id === null ? undefined : template(row.template_id));

/** Clients of PostHog for agents name themselves in a header. */
const isFromAgent = ({ headers }: FastifyRequest): boolean => headers['x-posthog-client'] === 'mcp';

/**
 * Answers whether a change waits as a draft: where the request says so, and where an agent changes a destination that
 * runs. Clients of PostHog for agents count on that.
 */
function isForDraft(request: FastifyRequest, { enabled, type }: ShownFunctionRow): boolean {
  const { draft } = request.query as z.output<typeof changeQuery>;
  if (draft !== undefined) return isSet(draft);
  return isFromAgent(request) && enabled && type === 'destination';
}

/** Adds the routes that create, read, change and order functions. */
export function resourceRoutes(app: App, deps: FunctionRouteDependencies): void {
  const { pool, publicUrl } = deps;
  const templateOf = ({ template_id: id }: ShownFunctionRow) => (id === null ? undefined : deps.template(id));
  const view = viewer(deps);

  app.get(
    PREFIX,
    {
      config: { access: { scope: READ } },
      schema: {
        tags: TAGS,
        summary: 'List functions in the order of their execution',
        params,
        querystring: functionQuery,
        response: { 200: page(z.union([hogFunction, functionItem])) },
      },
    },
    async (request) => {
      const wanted = pageOf(request.query);
      const { count, rows, match } = await findFunctions(pool, {
        ...listQueryOf(request.query),
        ...wanted,
        projectId: request.project.id,
      });
      const shown = isFull(request.query)
        ? view
        : (row: ShownFunctionRow) => functionItemView(row, templateOf(row));
      const found = match === undefined ? {} : { search_match_type: match };
      const items = await mapInTurns(rows, (row) => ({ ...shown(row), ...found }));
      return paginated(request, publicUrl, wanted, count, items);
    },
  );

  app.post(
    PREFIX,
    {
      config: { access: { scope: WRITE } },
      schema: {
        tags: TAGS,
        summary: 'Create a function',
        description:
          'It is compiled, and does not run unless `enabled` is true. A template fills what you leave out.',
        params,
        body: newFunction,
        response: { 201: hogFunction },
      },
    },
    async (request, reply) => {
      const { project, body } = request;
      const { type = deps.template(body.template_id ?? '')?.type ?? 'destination' } = body;
      if (isFromAgent(request) && body.enabled && type === 'destination') {
        throw refuse.invalid(
          'enabled',
          'An agent creates a destination disabled. Try it, and then enable it.',
        );
      }
      const row = await createFunction(deps, actorOf(request), project.id, body, clientSignal(reply));
      reply.code(201);
      return view(row);
    },
  );

  app.get(
    `${PREFIX}:id/`,
    {
      config: { access: { scope: READ }, isNeverDeleted: true },
      preValidation: findsFunction(pool),
      schema: {
        tags: TAGS,
        summary: 'Retrieve a function',
        params: functionParams,
        response: { 200: hogFunction },
      },
    },
    async ({ hogFunction: row }) => view(row),
  );

  for (const [method, summary] of [
    ['PUT', 'Change a function; fields that you leave out keep their values'],
    ['PATCH', 'Change some fields of a function'],
  ] as const) {
    app.route({
      method,
      url: `${PREFIX}:id/`,
      config: { access: { scope: WRITE } },
      preValidation: findsFunction(pool, { deleted: true }),
      schema: {
        tags: TAGS,
        summary,
        description:
          'With `?draft=true`, the change waits as a draft. Secret inputs that you leave out, or send as `{"secret": true}`, keep their values. `{"deleted": true}` ' +
          'deletes the function, and `{"deleted": false}` brings it back.',
        params: functionParams,
        querystring: changeQuery,
        body: changedFunction,
        response: { 200: hogFunction },
      },
      handler: async (request, reply) => {
        const { project, hogFunction: row } = request;
        const { template_id: _kept, ...change } = request.body;
        const key = { projectId: project.id, functionId: row.id };
        const command = isForDraft(request, row) ? saveDraft : changeFunction;
        return view(await command(deps, actorOf(request), key, change, clientSignal(reply)));
      },
    });
  }

  app.patch(
    `${PREFIX}rearrange/`,
    {
      config: { access: { scope: WRITE } },
      schema: {
        tags: TAGS,
        summary: 'Give transformations other places in their order',
        description: 'Answers with all transformations of the project in their new order.',
        params,
        body: newOrders,
        response: { 200: z.array(hogFunction) },
      },
    },
    async (request) => {
      const orders = new Map(Object.entries(request.body.orders));
      return (await rearrangeFunctions(deps, actorOf(request), request.project.id, orders)).map(view);
    },
  );
}
