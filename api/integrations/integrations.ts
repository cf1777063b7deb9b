import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Queryable } from '../../db/pool.ts';
import { changeIntegration } from '../../integrations/commands/change.ts';
import { createIntegration } from '../../integrations/commands/create.ts';
import { removeIntegration } from '../../integrations/commands/remove.ts';
import {
  findIntegration,
  type IntegrationRow,
  keyOf,
  listIntegrations,
} from '../../integrations/rows/integrations.ts';
import { actorOf } from '../actor.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';
import { serialOf } from '../serial.ts';
import { integration, integrationPatch, integrationView, newIntegration } from './integration-schema.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The integration of the path, as it was before the body was validated. Only routes with `findsIntegration` have it. */
    integration: IntegrationRow;
  }
}

const TAGS = ['integrations'];
const PREFIX = '/api/projects/:project_id/integrations/';
const params = z.object({ project_id: z.string() });
const integrationParams = params.extend({ id: z.string() });

/**
 * Makes a hook that finds the integration of the path. It runs before the body is validated, so the answer for an unknown
 * integration is 404 whatever the body contains.
 */
function findsIntegration(queryable: Queryable) {
  return async (request: FastifyRequest): Promise<void> => {
    const integrationId = serialOf((request.params as { id: string }).id);
    const projectId = request.project.id;
    const row = integrationId && (await findIntegration(queryable, { projectId, integrationId }));
    if (!row) throw errors.notFound();
    request.integration = row;
  };
}

/** Adds the routes that create, read, change and delete integrations. */
export function integrationRoutes(app: App, deps: ApiDependencies): void {
  const { pool, config } = deps;
  const find = findsIntegration(pool);

  app.get(
    PREFIX,
    {
      config: { access: { scope: 'integration:read' } },
      schema: {
        tags: TAGS,
        summary: 'List integrations, newest first',
        params,
        querystring: pageQuery.extend({
          kind: z.string().optional().meta({ description: 'Only integrations of this kind.' }),
        }),
        response: { 200: page(integration) },
      },
    },
    async (request) => {
      const wanted = pageOf(request.query);
      const { kind } = request.query;
      const { count, rows } = await listIntegrations(pool, request.project.id, { kind, ...wanted });
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, rows.map(integrationView));
    },
  );

  app.post(
    PREFIX,
    {
      config: { access: { scope: 'integration:write' } },
      schema: {
        tags: TAGS,
        summary: 'Create an integration',
        params,
        body: newIntegration,
        response: { 201: integration },
      },
    },
    async (request, reply) => {
      const row = await createIntegration(deps, actorOf(request), request.project.id, request.body);
      reply.code(201);
      return integrationView(row);
    },
  );

  app.get(
    `${PREFIX}:id/`,
    {
      config: { access: { scope: 'integration:read' } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Retrieve an integration',
        params: integrationParams,
        response: { 200: integration },
      },
    },
    async (request) => integrationView(request.integration),
  );

  app.patch(
    `${PREFIX}:id/`,
    {
      config: { access: { scope: 'integration:write' } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Change the configuration of an integration',
        params: integrationParams,
        body: integrationPatch,
        response: { 200: integration },
      },
    },
    async (request) => {
      const key = keyOf(request.integration);
      return integrationView(await changeIntegration(deps, actorOf(request), key, request.body));
    },
  );

  app.delete(
    `${PREFIX}:id/`,
    {
      config: { access: { scope: 'integration:write' } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Delete an integration with its secrets',
        params: integrationParams,
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      await removeIntegration(deps, actorOf(request), keyOf(request.integration));
      return reply.code(204).send(null);
    },
  );
}
