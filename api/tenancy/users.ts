import { z } from 'zod';
import {
  findMemberOrganization,
  listMemberOrganizations,
  type MemberOrganizationRow,
  type ProjectSummaryRow,
} from '../../db/organizations.ts';
import { transaction } from '../../db/pool.ts';
import { findMemberProject } from '../../db/projects.ts';
import { findUser, updateUser } from '../../db/users.ts';
import { audit, changes } from '../../tenancy/audit.ts';
import type { Caller } from '../access.ts';
import { actorOf } from '../actor.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { freeForm, optionalText, timestamp } from '../fields.ts';
import {
  organization,
  organizationSummary,
  organizationSummaryView,
  organizationView,
} from './organization-schema.ts';
import { projectSummary, projectSummaryView } from './project-schema.ts';
import { basicUser, basicUserView } from './user-schema.ts';

const TAGS = ['users'];
const ORGANIZATIONS_SHOWN = 1000;
const params = z.object({ user_id: z.string() });
const roles = z.enum([
  'engineering',
  'data',
  'product',
  'founder',
  'leadership',
  'marketing',
  'sales',
  'other',
]);

const me = basicUser
  .extend({
    date_joined: timestamp,
    is_staff: z.boolean(),
    is_2fa_enabled: z.boolean(),
    has_password: z.boolean(),
    theme_mode: z.string().nullable(),
    team: projectSummary.nullable(),
    organization: organization.nullable(),
    organizations: z.array(organizationSummary),
  })
  .meta({ id: 'User' });

const patch = z.object({
  first_name: optionalText(150).optional(),
  last_name: optionalText(150).optional(),
  role_at_organization: roles.nullable().optional(),
  theme_mode: z.enum(['light', 'dark', 'system']).nullable().optional(),
  hedgehog_config: freeForm.nullable().optional(),
  set_current_organization: z.uuid().optional(),
  set_current_team: z
    .int()
    .min(1)
    .max(2 ** 31 - 1)
    .optional(),
});

export function userRoutes(app: App, { pool, config }: ApiDependencies): void {
  /** Returns the project that the user chose last, or else the first one of the organization. */
  function currentProject(
    user: { current_project_id: number | null },
    current: MemberOrganizationRow | undefined,
  ) {
    const projects: ProjectSummaryRow[] = current?.projects ?? [];
    return projects.find((one) => one.id === user.current_project_id) ?? projects[0];
  }

  async function view({ user: { id } }: Caller): Promise<z.output<typeof me>> {
    const user = await findUser(pool, id);
    if (!user) throw errors.notFound();
    const { rows } = await listMemberOrganizations(pool, id, { limit: ORGANIZATIONS_SHOWN, offset: 0 });
    const current = rows.find((row) => row.id === user.current_organization_id) ?? rows[0];
    const project = currentProject(user, current);
    return {
      ...basicUserView(user),
      date_joined: user.date_joined,
      is_staff: user.is_staff,
      is_2fa_enabled: false,
      has_password: false,
      theme_mode: user.theme_mode,
      team: project ? projectSummaryView(project) : null,
      organization: current ? organizationView(current, config.SLUICE_INSTANCE_TAG) : null,
      organizations: rows.map(organizationSummaryView),
    };
  }

  function requireMe(caller: Caller, id: string): void {
    if (id !== '@me' && id !== caller.user.uuid) throw errors.notFound();
  }

  app.get(
    '/api/users/:user_id/',
    {
      config: { access: { scope: 'user:read', ignoresBounds: true } },
      schema: { tags: TAGS, summary: 'Retrieve your own user, as `@me`', params, response: { 200: me } },
    },
    async (request) => {
      requireMe(request.caller, request.params.user_id);
      return view(request.caller);
    },
  );

  app.patch(
    '/api/users/:user_id/',
    {
      config: { access: { scope: 'user:write', ignoresBounds: true } },
      schema: {
        tags: TAGS,
        summary: 'Change your own user, as `@me`',
        params,
        body: patch,
        response: { 200: me },
      },
      preValidation: async (request) =>
        requireMe(request.caller, (request.params as { user_id: string }).user_id),
    },
    async (request) => {
      const { user } = request.caller;
      const { set_current_organization, set_current_team, ...fields } = request.body;
      await transaction(pool, async (client) => {
        if (set_current_organization !== undefined) {
          const found = await findMemberOrganization(client, user.id, set_current_organization);
          if (!found) {
            throw errors.validation('does_not_exist', 'Organization not found.', 'set_current_organization');
          }
          await updateUser(client, user.id, {
            current_organization_id: found.id,
            current_project_id: found.projects[0]?.id ?? null,
          });
        }
        if (set_current_team !== undefined) {
          const found = await findMemberProject(client, user.id, set_current_team);
          if (!found) throw errors.validation('does_not_exist', 'Project not found.', 'set_current_team');
          await updateUser(client, user.id, {
            current_organization_id: found.organization_id,
            current_project_id: found.id,
          });
        }
        await updateUser(client, user.id, fields);
        await audit(client, actorOf(request), {
          scope: 'User',
          itemId: user.uuid,
          activity: 'updated',
          detail: changes(user, fields),
        });
      });
      return view(request.caller);
    },
  );
}
