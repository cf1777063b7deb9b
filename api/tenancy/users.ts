import { z } from 'zod';
import { findCurrentPlace, findMemberOrganization, listMemberOrganizations } from '../../db/organizations.ts';
import { transaction } from '../../db/pool.ts';
import { findMemberProject } from '../../db/projects.ts';
import { findUser, updateUser } from '../../db/users.ts';
import { audit, changes } from '../../tenancy/audit.ts';
import { admitsKeys, boundsOf, type Caller, isWithin, narrow } from '../access.ts';
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
  set_current_organization: z.guid().optional(),
  set_current_team: z
    .int()
    .min(1)
    .max(2 ** 31 - 1)
    .optional(),
});

const standingIn = (row: { membership_level: number; members_can_use_personal_api_keys: boolean }) => ({
  level: row.membership_level,
  keysAllowed: row.members_can_use_personal_api_keys,
});

export function userRoutes(app: App, { pool, config }: ApiDependencies): void {
  async function view({ user: { id }, key }: Caller): Promise<z.output<typeof me>> {
    const user = await findUser(pool, id);
    if (!user) throw errors.notFound();
    const listed = await listMemberOrganizations(pool, id, {
      only: key.scoped_organizations,
      limit: ORGANIZATIONS_SHOWN,
      offset: 0,
    });
    const rows = listed.rows.map((row) => narrow(key, row)).filter((row) => row !== undefined);
    // What `@current` means in a path.
    const place = await findCurrentPlace(pool, id, boundsOf(key));
    const current = rows.find((row) => row.id === place.organization_id);
    const project = current?.projects.find((one) => one.id === place.project_id);
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
      const { user, key } = request.caller;
      const { set_current_organization, set_current_team, ...fields } = request.body;
      await transaction(pool, async (client) => {
        if (set_current_organization !== undefined) {
          const member = await findMemberOrganization(client, user.id, set_current_organization);
          const found = member && narrow(key, member);
          if (!found || !admitsKeys(standingIn(found))) {
            throw errors.validation('does_not_exist', 'Organization not found.', 'set_current_organization');
          }
          await updateUser(client, user.id, {
            current_organization_id: found.id,
            current_project_id: found.projects[0]?.id ?? null,
          });
        }
        if (set_current_team !== undefined) {
          const found = await findMemberProject(client, user.id, set_current_team);
          if (!found || !isWithin(key, found) || !admitsKeys(standingIn(found))) {
            throw errors.validation('does_not_exist', 'Project not found.', 'set_current_team');
          }
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
