import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { lockOrganization, lockProjectsOf } from '../../db/organizations.ts';
import { transaction } from '../../db/pool.ts';
import {
  deleteSecretTokenBackup,
  findMemberProject,
  hasProjects,
  keepSettings,
  listMemberProjects,
  type MemberProjectRow,
  rotateSecretToken,
  updateProject,
} from '../../db/projects.ts';
import { SecretError } from '../../secrets/envelope.ts';
import { audit, changes } from '../../tenancy/audit.ts';
import { removeProject } from '../../tenancy/deletion.ts';
import { ADMIN } from '../../tenancy/levels.ts';
import { createProject } from '../../tenancy/organizations.ts';
import { openProjectSecret, sealProjectSecret } from '../../tenancy/project-secrets.ts';
import { scopeAllows } from '../../tenancy/scopes.ts';
import { hashToken, newProjectSecret, newProjectToken } from '../../tenancy/tokens.ts';
import { actorOf } from '../actor.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';
import {
  keptIn,
  newProject,
  project,
  projectPatch,
  projectSummary,
  projectSummaryView,
  projectView,
  type ShownSecrets,
} from './project-schema.ts';

const TAGS = ['projects'];
const KEYS_RETRY_SECONDS = 60;
const params = z.object({ project_id: z.string() });
const organizationParams = z.object({ organization_id: z.string() });
const nestedParams = organizationParams.extend(params.shape);

const NO_SECRETS: ShownSecrets = { secret_api_token: null, secret_api_token_backup: null };

export function projectRoutes(
  app: App,
  { pool, config, schedules, products, keyring }: ApiDependencies,
): void {
  /** Shows the secret tokens to those who could replace them. */
  function secretsFor({ caller, log }: FastifyRequest, row: MemberProjectRow): ShownSecrets {
    if (row.membership_level < ADMIN || !scopeAllows(caller.key.scopes, 'project:write')) return NO_SECRETS;
    try {
      return {
        secret_api_token: openProjectSecret(keyring, row.id, row.secret_api_token),
        secret_api_token_backup: openProjectSecret(keyring, row.id, row.secret_api_token_backup),
      };
    } catch (error) {
      if (!(error instanceof SecretError)) throw error;
      // The rest of the project does not need the key. A new token can be made.
      log.error({ err: error }, 'the secret tokens of a project cannot be opened');
      return NO_SECRETS;
    }
  }
  const view = (request: FastifyRequest, row: MemberProjectRow) => projectView(row, secretsFor(request, row));
  const reload = async (request: FastifyRequest, id: number) => {
    const row = await findMemberProject(pool, request.caller.user.id, id);
    if (!row) throw errors.notFound('Project not found.');
    return view(request, row);
  };

  // The same two operations exist under an organization, and at the top level for the caller's current organization.
  for (const prefix of ['/api/organizations/:organization_id/projects/', '/api/projects/'] as const) {
    const nested = prefix.includes(':');
    const where = nested ? 'of an organization' : "of the caller's current organization";
    const place = nested ? {} : { inCurrentOrganization: true as const };
    const schema = { tags: TAGS, ...(nested ? { params: organizationParams } : {}) };

    app.get(
      prefix,
      {
        config: { access: { scope: 'project:read', ...place } },
        schema: {
          ...schema,
          summary: `List the projects ${where}`,
          querystring: pageQuery.extend({
            search: z.string().max(200).optional().meta({
              description: 'Only projects whose name has this text in it, in any case.',
            }),
          }),
          response: { 200: page(projectSummary) },
        },
      },
      async (request) => {
        const wanted = pageOf(request.query);
        const { user } = request.caller;
        const organizationId = request.organization.id;
        const { search } = request.query;
        const { count, rows } = await listMemberProjects(pool, user.id, organizationId, {
          ...wanted,
          search,
        });
        return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, rows.map(projectSummaryView));
      },
    );

    app.post(
      prefix,
      {
        config: { access: { scope: 'project:write', level: ADMIN, ...place } },
        schema: {
          ...schema,
          summary: `Create a project ${where}`,
          body: newProject,
          response: { 201: project },
        },
      },
      async (request, reply) => {
        const { user } = request.caller;
        const organizationId = request.organization.id;
        const { name, timezone, ...settings } = request.body;
        const most = config.SLUICE_PROJECTS_PER_ORGANIZATION;
        const id = await transaction(pool, async (client) => {
          // Nobody else adds a project meanwhile.
          if (!(await lockProjectsOf(client, organizationId)))
            throw errors.notFound('Organization not found.');
          const standing = await lockOrganization(client, user.id, organizationId);
          if (!standing) throw errors.notFound('Organization not found.');
          if (standing.level < ADMIN) {
            throw errors.permissionDenied('Your organization access level is insufficient.');
          }
          if (await hasProjects(client, organizationId, most)) {
            throw errors.validation(
              'invalid_input',
              `This organization already has ${most} projects, the most that it may have. Delete one before creating another.`,
              null,
            );
          }
          const created = await createProject(client, {
            name,
            organizationId,
            userId: user.id,
            ...(timezone ? { timezone } : {}),
          });
          await updateProject(client, created.id, settings);
          await keepSettings(client, created.id, keptIn(settings));
          await audit(client, actorOf(request), {
            scope: 'Project',
            itemId: String(created.id),
            activity: 'created',
            organizationId,
            projectId: created.id,
            detail: { name },
          });
          return created.id;
        });
        reply.code(201);
        return reload(request, id);
      },
    );
  }

  // Some tools know a project only below its organization.
  for (const prefix of ['/api/projects/', '/api/organizations/:organization_id/projects/'] as const) {
    const nested = prefix.includes(':');
    const where = nested ? ' of an organization' : '';
    const own = nested ? nestedParams : params;
    app.get(
      `${prefix}:project_id/`,
      {
        config: { access: { scope: 'project:read' } },
        schema: {
          tags: TAGS,
          summary: `Retrieve a project${where}`,
          params: own,
          response: { 200: project },
        },
      },
      async (request) => view(request, request.project),
    );

    app.patch(
      `${prefix}:project_id/`,
      {
        config: { access: { scope: 'project:write' } },
        schema: {
          tags: TAGS,
          summary: `Change a project${where}`,
          params: own,
          body: projectPatch,
          response: { 200: project },
        },
      },
      async (request) => {
        const { id, organization_id } = request.project;
        await transaction(pool, async (client) => {
          await updateProject(client, id, request.body);
          await keepSettings(client, id, keptIn(request.body));
          await audit(client, actorOf(request), {
            scope: 'Project',
            itemId: String(id),
            activity: 'updated',
            organizationId: organization_id,
            projectId: id,
            detail: changes({ ...request.project, ...request.project.kept_settings }, request.body),
          });
        });
        return reload(request, id);
      },
    );

    app.delete(
      `${prefix}:project_id/`,
      {
        config: { access: { scope: 'project:write', level: ADMIN } },
        schema: {
          tags: TAGS,
          summary: `Delete a project${where}`,
          description: 'Its schedules are stopped and its events are deleted in the background.',
          params: own,
          response: { 204: z.null() },
        },
      },
      async (request, reply) => {
        const { id, organization_id, name } = request.project;
        await transaction(pool, async (client) => {
          if (!(await removeProject(client, id, organization_id, products)))
            throw errors.notFound('Project not found.');
          await audit(client, actorOf(request), {
            scope: 'Project',
            itemId: String(id),
            activity: 'deleted',
            organizationId: organization_id,
            projectId: id,
            detail: { name },
          });
        });
        schedules.nudgeMaintenance();
        return reply.code(204).send(null);
      },
    );
  }

  // A new project key ends the old one. A new secret token leaves the old one valid as the backup.
  const rotations = [
    { path: 'reset_token', summary: 'Replace the project key; the old key stops working' },
    {
      path: 'rotate_secret_token',
      summary: 'Create a new secret token; the old one stays valid as the backup',
    },
    { path: 'delete_secret_token_backup', summary: 'Revoke the backup of the secret token' },
  ] as const;
  for (const { path, summary } of rotations) {
    app.patch(
      `/api/projects/:project_id/${path}/`,
      {
        config: { access: { scope: 'project:write', level: ADMIN } },
        schema: { tags: TAGS, summary, params, response: { 200: project } },
      },
      async (request) => {
        const { id, organization_id } = request.project;
        if (path === 'rotate_secret_token' && !keyring) {
          throw errors.unavailable(
            'There are no encryption keys (SLUICE_ENCRYPTION_KEYS), so the secret token cannot be stored.',
            KEYS_RETRY_SECONDS,
          );
        }
        await transaction(pool, async (client) => {
          if (path === 'rotate_secret_token') {
            const secret = newProjectSecret();
            const token = sealProjectSecret(keyring, id, secret);
            await rotateSecretToken(client, id, { token, hash: hashToken(secret) });
          } else if (path === 'reset_token')
            await updateProject(client, id, { api_token: newProjectToken() });
          else await deleteSecretTokenBackup(client, id);
          await audit(client, actorOf(request), {
            scope: 'Project',
            itemId: String(id),
            activity: 'rolled',
            organizationId: organization_id,
            projectId: id,
            detail: { token: path },
          });
        });
        return reload(request, id);
      },
    );
  }
}
