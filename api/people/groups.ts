import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { listGroupTypes, renameGroupTypes } from '../../db/group-types.ts';
import { deleteGroup, findGroup, findGroupByKey, type GroupRow, listGroups } from '../../db/groups.ts';
import { transaction } from '../../db/pool.ts';
import { audit } from '../../tenancy/audit.ts';
import { isUuid } from '../../values/uuid.ts';
import { actorOf } from '../actor.ts';
import { clientSignal } from '../asker.ts';
import { bounded } from '../bounded-query.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';
import { groupType } from '../tenancy/project-schema.ts';
import { group, groupProperty, groupTypeIndex, groupTypeNames, groupView, newGroup } from './group-schema.ts';
import { storeOwnEvent } from './own-events.ts';

const TAGS = ['groups'];
const params = z.object({ project_id: z.string() });
const groupParams = params.extend({ id: z.string() });

/** Adds the routes that read and delete groups and name their types. Events create groups. */
export function groupRoutes(app: App, deps: ApiDependencies): void {
  const { pool, readingPool, config } = deps;

  /** Sets properties of a group, or creates it, by an event. Returns the group. */
  async function identify(
    { project: { id: projectId, uuid, group_types: types } }: FastifyRequest,
    index: number,
    key: string,
    properties: Record<string, unknown>,
  ): Promise<GroupRow> {
    const type = types.find((one) => one.group_type_index === index)?.group_type;
    if (type === undefined) throw errors.notFound();
    await storeOwnEvent(deps, {
      ...{ projectId, event: '$groupidentify', distinctId: uuid },
      properties: { $group_type: type, $group_key: key, $group_set: properties },
    });
    const row = await findGroupByKey(pool, projectId, index, key);
    if (!row) throw errors.notFound();
    return row;
  }

  app.get(
    '/api/projects/:project_id/groups/',
    {
      config: { access: { scope: 'group:read' } },
      schema: {
        tags: TAGS,
        summary: 'List groups by type and key',
        params,
        querystring: pageQuery.extend({
          group_type_index: groupTypeIndex.optional().meta({ description: 'Only groups of this type.' }),
          search: z.string().max(400).optional().meta({
            description:
              'Only groups whose key begins with this text, or that have it in their key or in a property at the beginning of a word. Case matters for the beginning of the key only.',
          }),
          group_key: z.string().max(400).optional().meta({
            description: 'Only groups whose key has this text in it, in any case.',
          }),
        }),
        response: { 200: page(group) },
      },
    },
    async (request, reply) => {
      const wanted = pageOf(request.query);
      const { group_type_index, search, group_key: groupKey } = request.query;
      const { count, rows } = await bounded(
        listGroups(
          readingPool,
          { projectId: request.project.id, groupTypeIndex: group_type_index, search, groupKey, ...wanted },
          clientSignal(reply),
        ),
        'Narrow it with `group_type_index` and `search`.',
      );
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, rows.map(groupView));
    },
  );

  app.post(
    '/api/projects/:project_id/groups/',
    {
      config: { access: { scope: 'group:write' } },
      schema: {
        tags: TAGS,
        summary: 'Create a group',
        description:
          'Stores an event `$groupidentify`. The type must be known: an event with `$groups` makes it.',
        params,
        body: newGroup,
        response: { 201: group },
      },
    },
    async (request, reply) => {
      const { group_type_index: index, group_key: key, group_properties: properties } = request.body;
      const { id: projectId, organization_id: organizationId } = request.project;
      if (await findGroupByKey(pool, projectId, index, key)) {
        throw errors.validation('invalid_input', 'A group with this key already exists', 'detail');
      }
      const row = await identify(request, index, key, properties ?? {});
      await audit(pool, actorOf(request), {
        ...{ scope: 'Group', itemId: row.id, activity: 'created', organizationId, projectId },
        detail: { group_type_index: index, group_key: key },
      });
      reply.code(201);
      return groupView(row);
    },
  );

  app.post(
    '/api/projects/:project_id/groups/update_property/',
    {
      config: { access: { scope: 'group:write' } },
      schema: {
        tags: TAGS,
        summary: 'Set a property of a group',
        description: 'Stores an event `$groupidentify`.',
        params,
        querystring: z.object({ group_type_index: groupTypeIndex, group_key: z.string() }),
        body: groupProperty,
        response: { 200: group },
      },
    },
    async (request) => {
      const { group_type_index: index, group_key: groupKey } = request.query;
      const { key, value } = request.body;
      const { id: projectId, organization_id: organizationId } = request.project;
      if (!(await findGroupByKey(pool, projectId, index, groupKey))) throw errors.notFound();
      const row = await identify(request, index, groupKey, Object.fromEntries([[key, value]]));
      await audit(pool, actorOf(request), {
        ...{ scope: 'Group', itemId: row.id, activity: 'updated', organizationId, projectId },
        detail: { properties: [key] },
      });
      return groupView(row);
    },
  );

  app.get(
    '/api/projects/:project_id/groups/find/',
    {
      config: { access: { scope: 'group:read' } },
      schema: {
        tags: TAGS,
        summary: 'Find a group by its type and key',
        params,
        querystring: z.object({ group_type_index: groupTypeIndex, group_key: z.string() }),
        response: { 200: group },
      },
    },
    async ({ project, query }) => {
      const row = await findGroupByKey(pool, project.id, query.group_type_index, query.group_key);
      if (!row) throw errors.notFound();
      return groupView(row);
    },
  );

  app.get(
    '/api/projects/:project_id/groups/:id/',
    {
      config: { access: { scope: 'group:read' } },
      schema: { tags: TAGS, summary: 'Retrieve a group', params: groupParams, response: { 200: group } },
    },
    async ({ project, params: { id } }) => {
      const row = isUuid(id) ? await findGroup(pool, project.id, id) : undefined;
      if (!row) throw errors.notFound();
      return groupView(row);
    },
  );

  app.delete(
    '/api/projects/:project_id/groups/:id/',
    {
      config: { access: { scope: 'group:write' } },
      schema: {
        tags: TAGS,
        summary: 'Delete a group',
        description: 'The events of the group stay. A later `$groupidentify` event creates the group again.',
        params: groupParams,
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const { id: projectId, organization_id: organizationId } = request.project;
      if (!isUuid(id)) throw errors.notFound();
      await transaction(pool, async (client) => {
        if (!(await deleteGroup(client, projectId, id))) throw errors.notFound();
        await audit(client, actorOf(request), {
          scope: 'Group',
          itemId: id.toLowerCase(),
          activity: 'deleted',
          organizationId,
          projectId,
        });
      });
      return reply.code(204).send(null);
    },
  );

  app.get(
    '/api/projects/:project_id/groups_types/',
    {
      config: { access: { scope: 'group:read' } },
      schema: {
        tags: TAGS,
        summary: 'List the group types in the order of their indexes',
        params,
        response: { 200: z.array(groupType) },
      },
    },
    async ({ project }) => listGroupTypes(pool, project.id),
  );

  app.patch(
    '/api/projects/:project_id/groups_types/update_metadata/',
    {
      config: { access: { scope: 'group:write' } },
      schema: {
        tags: TAGS,
        summary: 'Set the display names of group types',
        description: 'The body and the answer are lists. `group_type`, which events use, cannot be changed.',
        params,
        body: groupTypeNames,
        response: { 200: z.array(groupType) },
      },
    },
    async (request) => {
      const { id: projectId, organization_id: organizationId } = request.project;
      const names = request.body;
      return transaction(pool, async (client) => {
        const known = await renameGroupTypes(client, projectId, names);
        const unknown = names.findIndex((one) => !known.has(one.group_type_index));
        if (unknown >= 0) {
          throw errors.validation(
            'does_not_exist',
            `There is no group type with the index ${names[unknown]?.group_type_index}.`,
            `${unknown}__group_type_index`,
          );
        }
        for (const { group_type_index, ...detail } of names) {
          await audit(client, actorOf(request), {
            scope: 'GroupType',
            itemId: String(group_type_index),
            activity: 'updated',
            organizationId,
            projectId,
            detail,
          });
        }
        return listGroupTypes(client, projectId);
      });
    },
  );
}
