import { z } from 'zod';
import {
  findMemberOrganization,
  listMemberOrganizations,
  lockOwnedOrganizations,
  lockProjectsOf,
  markEnvironmentsRollback,
  updateOrganization,
} from '../../db/organizations.ts';
import { transaction } from '../../db/pool.ts';
import { moveConfiguration } from '../../db/project-tables.ts';
import { projectIdsOf } from '../../db/projects.ts';
import { audit, changes } from '../../tenancy/audit.ts';
import { removeOrganization } from '../../tenancy/deletion.ts';
import { ADMIN, OWNER } from '../../tenancy/levels.ts';
import { createOrganization } from '../../tenancy/organizations.ts';
import { projectTables } from '../../tenancy/product.ts';
import { actorOf } from '../actor.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';
import { newOrganization, organization, organizationPatch, organizationView } from './organization-schema.ts';

const TAGS = ['organizations'];
const params = z.object({ organization_id: z.string() });

const rollbackAnswer = organization
  .extend({ success: z.literal(true), message: z.string() })
  .meta({ id: 'OrganizationRollback' });

function environmentId(value: unknown): number | undefined {
  const isId = (typeof value === 'string' && /^\d{1,9}$/.test(value)) || Number.isInteger(value);
  return isId ? Number(value) : undefined;
}

function parseMappings(body: Record<string, unknown>): Map<number, number> {
  const mappings = new Map<number, number>();
  for (const [source, target] of Object.entries(body)) {
    const [from, to] = [environmentId(source), environmentId(target)];
    if (from === undefined || to === undefined || mappings.has(from)) {
      throw errors.validation(
        'invalid_input',
        `Environment mappings must map each environment id to one environment id; "${source.slice(0, 100)}" does not.`,
        null,
      );
    }
    mappings.set(from, to);
  }
  if (mappings.size === 0)
    throw errors.validation('invalid_input', 'Environment mappings are required', null);
  return mappings;
}

export function organizationRoutes(app: App, { pool, config, schedules, products }: ApiDependencies): void {
  const view = (row: Parameters<typeof organizationView>[0]) =>
    organizationView(row, config.SLUICE_INSTANCE_TAG);
  const reload = async (userId: number, id: string) => {
    const row = await findMemberOrganization(pool, userId, id);
    if (!row) throw errors.notFound();
    return view(row);
  };

  app.get(
    '/api/organizations/',
    {
      config: { access: { scope: 'organization:read' } },
      schema: {
        tags: TAGS,
        summary: 'List the organizations of the caller',
        querystring: pageQuery,
        response: { 200: page(organization) },
      },
    },
    async (request) => {
      const wanted = pageOf(request.query);
      const { user, key } = request.caller;
      const { count, rows } = await listMemberOrganizations(pool, user.id, {
        only: key.scoped_organizations,
        ...wanted,
      });
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, rows.map(view));
    },
  );

  app.post(
    '/api/organizations/',
    {
      config: { access: { scope: 'organization:write' } },
      schema: {
        tags: TAGS,
        summary: 'Create an organization',
        description: 'The caller becomes its owner. It starts with a default project.',
        body: newOrganization,
        response: { 201: organization },
      },
    },
    async (request, reply) => {
      const { user, key } = request.caller;
      if (key.scoped_organizations.length > 0) {
        throw errors.permissionDenied(
          'API keys that are bound to organizations cannot create organizations.',
        );
      }
      if (!config.SLUICE_ALLOW_ORGANIZATION_CREATION) {
        throw errors.permissionDenied(
          'This installation does not allow further organizations (SLUICE_ALLOW_ORGANIZATION_CREATION is false).',
        );
      }
      const { name, ...settings } = request.body;
      const most = config.SLUICE_ORGANIZATIONS_PER_USER;
      const id = await transaction(pool, async (client) => {
        if ((await lockOwnedOrganizations(client, user.id, OWNER)) >= most) {
          throw errors.validation(
            'invalid_input',
            `You already own ${most} organizations, the most that a user may create. Delete one before creating another.`,
            null,
          );
        }
        const { organizationId } = await createOrganization(client, { name, userId: user.id });
        await updateOrganization(client, organizationId, settings);
        await audit(client, actorOf(request), {
          scope: 'Organization',
          itemId: organizationId,
          activity: 'created',
          organizationId,
          detail: { name },
        });
        return organizationId;
      });
      reply.code(201);
      return reload(user.id, id);
    },
  );

  app.get(
    '/api/organizations/:organization_id/',
    {
      config: { access: { scope: 'organization:read', isOrganization: true } },
      schema: { tags: TAGS, summary: 'Retrieve an organization', params, response: { 200: organization } },
    },
    async (request) => view(request.organization),
  );

  app.patch(
    '/api/organizations/:organization_id/',
    {
      config: { access: { scope: 'organization:write', level: ADMIN, isOrganization: true } },
      schema: {
        tags: TAGS,
        summary: 'Change an organization',
        params,
        body: organizationPatch,
        response: { 200: organization },
      },
    },
    async (request) => {
      const { id } = request.organization;
      await transaction(pool, async (client) => {
        await updateOrganization(client, id, request.body);
        await audit(client, actorOf(request), {
          scope: 'Organization',
          itemId: id,
          activity: 'updated',
          organizationId: id,
          detail: changes(request.organization, request.body),
        });
      });
      return reload(request.caller.user.id, id);
    },
  );

  app.delete(
    '/api/organizations/:organization_id/',
    {
      config: { access: { scope: 'organization:write', level: OWNER, isOrganization: true } },
      schema: {
        tags: TAGS,
        summary: 'Delete an organization with all its projects',
        description: 'Its schedules are stopped and its events are deleted in the background.',
        params,
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      const { id, name } = request.organization;
      await transaction(pool, async (client) => {
        if (!(await removeOrganization(client, id, products))) throw errors.notFound();
        await audit(client, actorOf(request), {
          scope: 'Organization',
          itemId: id,
          activity: 'deleted',
          organizationId: id,
          detail: { name },
        });
      });
      schedules.nudgeMaintenance();
      return reply.code(204).send(null);
    },
  );

  app.post(
    '/api/organizations/:organization_id/environments_rollback/',
    {
      config: { access: { scope: 'organization:write', level: ADMIN, isOrganization: true } },
      schema: {
        tags: TAGS,
        summary: 'Move the configuration of projects to other projects',
        description:
          'The body maps the id of each source project to the id of its target. An organization can do this once.',
        params,
        body: z.record(z.string(), z.unknown()),
        response: { 200: rollbackAnswer },
      },
    },
    async (request) => {
      const { id } = request.organization;
      const requested = () =>
        errors.validation(
          'invalid_input',
          'Environments rollback has already been requested for this organization.',
          null,
        );
      if (request.organization.environments_rollback_at) throw requested();
      const mappings = parseMappings(request.body);
      await transaction(pool, async (client) => {
        // The lock keeps a project from being deleted while configuration moves to it.
        if (!(await lockProjectsOf(client, id))) throw errors.notFound();
        const own = new Set(await projectIdsOf(client, id));
        const missing = [...mappings].flat().filter((one) => !own.has(one));
        if (missing.length > 0) {
          const list = [...new Set(missing)].sort((a, b) => a - b).join(', ');
          throw errors.validation('invalid_input', `Environments not found: {${list}}`, null);
        }
        if (!(await markEnvironmentsRollback(client, id))) throw requested();
        await moveConfiguration(client, mappings, projectTables(products));
        await audit(client, actorOf(request), {
          scope: 'Organization',
          itemId: id,
          activity: 'rolled_back',
          organizationId: id,
          detail: { mappings: Object.fromEntries(mappings) },
        });
      });
      schedules.nudgeMaintenance();
      const row = await reload(request.caller.user.id, id);
      return { ...row, success: true as const, message: 'Migration started' };
    },
  );
}
