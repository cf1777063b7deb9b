import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { DoomedPersons } from '../../db/person-deletions.ts';
import { findPerson, listPersons } from '../../db/persons.ts';
import { type Transaction, transaction } from '../../db/pool.ts';
import { audit } from '../../tenancy/audit.ts';
import { removePersons } from '../../tenancy/deletion.ts';
import type { Product } from '../../tenancy/product.ts';
import { isUuid } from '../../values/uuid.ts';
import { actorOf } from '../actor.ts';
import { clientSignal } from '../asker.ts';
import { bounded } from '../bounded-query.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';
import {
  bulkDeleted,
  bulkDeletion,
  person,
  personView,
  SHOWN_ALONE,
  SHOWN_IN_LIST,
} from './person-schema.ts';

const TAGS = ['persons'];
const params = z.object({ project_id: z.string() });
const personParams = params.extend({ id: z.string() });

const listQuery = pageQuery.extend({
  distinct_id: z.string().optional().meta({ description: 'Only the person with this distinct_id.' }),
  email: z.string().optional().meta({ description: 'Only persons with this email, in any case.' }),
  search: z.string().optional().meta({
    description:
      'Only persons whose distinct_id, email or name begins with this text. Case matters for the distinct_id only.',
  }),
});

/** Deletes persons and records it. The log outlives a person, so it must not say who the person was. */
async function deleteAndAudit(
  client: Transaction,
  request: FastifyRequest,
  doomed: DoomedPersons,
  products: readonly Product[],
): Promise<number> {
  const { id: projectId, organization_id: organizationId } = request.project;
  const deleted = await removePersons(client, projectId, doomed, products);
  for (const { id, distinct_ids } of deleted) {
    await audit(client, actorOf(request), {
      scope: 'Person',
      itemId: id,
      activity: 'deleted',
      organizationId,
      projectId,
      detail: { distinct_ids },
    });
  }
  return deleted.length;
}

/** Adds the routes that read and delete persons. Events create persons. */
export function personRoutes(app: App, { pool, readingPool, config, products }: ApiDependencies): void {
  app.get(
    '/api/projects/:project_id/persons/',
    {
      config: { access: { scope: 'person:read' } },
      schema: {
        tags: TAGS,
        summary: 'List persons, newest first',
        params,
        querystring: listQuery,
        response: { 200: page(person) },
      },
    },
    async (request, reply) => {
      const wanted = pageOf(request.query);
      const { distinct_id: distinctId, email, search } = request.query;
      const { count, rows } = await bounded(
        listPersons(
          readingPool,
          {
            ...{ projectId: request.project.id, distinctId, email, search },
            distinctIds: SHOWN_IN_LIST,
            ...wanted,
          },
          clientSignal(reply),
        ),
        'Narrow it with `distinct_id`, `email` or `search`.',
      );
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, rows.map(personView));
    },
  );

  app.get(
    '/api/projects/:project_id/persons/:id/',
    {
      config: { access: { scope: 'person:read' } },
      schema: { tags: TAGS, summary: 'Retrieve a person', params: personParams, response: { 200: person } },
    },
    async ({ project, params: { id } }) => {
      const row = isUuid(id) ? await findPerson(pool, project.id, id, SHOWN_ALONE) : undefined;
      if (!row) throw errors.notFound();
      return personView(row);
    },
  );

  app.delete(
    '/api/projects/:project_id/persons/:id/',
    {
      config: { access: { scope: 'person:write' } },
      schema: {
        tags: TAGS,
        summary: 'Delete a person',
        description:
          'The events of the person stay. A later event with one of the distinct ids creates a new person.',
        params: personParams,
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      if (!isUuid(id)) throw errors.notFound();
      const deleted = await transaction(pool, (client) =>
        deleteAndAudit(client, request, { ids: [id] }, products),
      );
      if (deleted === 0) throw errors.notFound();
      return reply.code(204).send(null);
    },
  );

  app.post(
    '/api/projects/:project_id/persons/bulk_delete/',
    {
      config: { access: { scope: 'person:write' } },
      schema: {
        tags: TAGS,
        summary: 'Delete up to 1000 persons at once',
        params,
        body: bulkDeletion,
        response: { 200: bulkDeleted },
      },
    },
    async (request) => {
      const { ids, distinct_ids: distinctIds } = request.body;
      const doomed = ids ? { ids } : { distinctIds: distinctIds ?? [] };
      const deleted = await transaction(pool, (client) => deleteAndAudit(client, request, doomed, products));
      return { persons_deleted: deleted };
    },
  );
}
