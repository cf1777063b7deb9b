import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { changeAction } from '../../actions/commands/change.ts';
import { createAction } from '../../actions/commands/create.ts';
import { type ActionRow, findAction, listActions } from '../../actions/rows/actions.ts';
import type { Queryable } from '../../db/pool.ts';
import { actorOf } from '../actor.ts';
import { clientSignal } from '../asker.ts';
import { bringsBack } from '../brings-back.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';
import { serialOf } from '../serial.ts';
import { action, actionInput, actionView, inputOf } from './action-schema.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The action of the path, as it was before the body was validated. Only routes with `findsAction` have it. */
    action: ActionRow;
  }
}

const TAGS = ['actions'];
const PREFIX = '/api/projects/:project_id/actions/';
const params = z.object({ project_id: z.string() });
const actionParams = params.extend({ id: z.string() });

/**
 * Makes a hook that finds the action of the path. It runs before the body is validated, so the answer for an unknown
 * action is 404 whatever the body contains. A deleted action is found only by a body that brings it back.
 */
function findsAction(queryable: Queryable) {
  return async (request: FastifyRequest): Promise<void> => {
    const actionId = serialOf((request.params as { id: string }).id);
    const row = actionId && (await findAction(queryable, { projectId: request.project.id, actionId }));
    if (!row || (row.deleted && !bringsBack(request))) throw errors.notFound();
    request.action = row;
  };
}

/** Adds the routes that create, read, change and delete actions. */
export function actionRoutes(app: App, deps: ApiDependencies): void {
  const { pool, config } = deps;
  const find = findsAction(pool);

  app.get(
    PREFIX,
    {
      config: { access: { scope: 'action:read' } },
      schema: {
        tags: TAGS,
        summary: 'List actions, newest first',
        params,
        querystring: pageQuery,
        response: { 200: page(action) },
      },
    },
    async (request) => {
      const wanted = pageOf(request.query);
      const { count, rows } = await listActions(pool, request.project.id, wanted);
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, rows.map(actionView));
    },
  );

  app.post(
    PREFIX,
    {
      config: { access: { scope: 'action:write' } },
      schema: {
        tags: TAGS,
        summary: 'Create an action',
        params,
        body: actionInput,
        response: { 201: action },
      },
    },
    async (request, reply) => {
      const input = inputOf(request.body);
      const row = await createAction(deps, actorOf(request), request.project, input, clientSignal(reply));
      reply.code(201);
      return actionView(row);
    },
  );

  app.get(
    `${PREFIX}:id/`,
    {
      config: { access: { scope: 'action:read' }, isNeverDeleted: true },
      preValidation: find,
      schema: { tags: TAGS, summary: 'Retrieve an action', params: actionParams, response: { 200: action } },
    },
    async (request) => actionView(request.action),
  );

  for (const [method, summary] of [
    ['PUT', 'Change an action'],
    ['PATCH', 'Change some fields of an action; delete it, or bring it back'],
  ] as const) {
    app.route({
      method,
      url: `${PREFIX}:id/`,
      config: { access: { scope: 'action:write' } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary,
        description:
          'Fields that you leave out keep their values. `steps` replaces all steps. There is no DELETE: `deleted` does ' +
          'it, and a PATCH with `"deleted": false` brings a deleted action back.',
        params: actionParams,
        body: actionInput,
        response: { 200: action },
      },
      handler: async (request, reply) => {
        const { action: row, project, body } = request;
        const signal = clientSignal(reply);
        return actionView(await changeAction(deps, actorOf(request), project, row.id, inputOf(body), signal));
      },
    });
  }
}
