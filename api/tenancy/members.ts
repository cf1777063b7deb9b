import { z } from 'zod';
import {
  deleteMembership,
  findMember,
  listMembers,
  lockMemberships,
  type MemberRow,
  setLevel,
} from '../../db/memberships.ts';
import { transaction } from '../../db/pool.ts';
import { audit } from '../../tenancy/audit.ts';
import { ADMIN, MEMBER, OWNER } from '../../tenancy/levels.ts';
import { isUuid } from '../../values/uuid.ts';
import { actorOf } from '../actor.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { timestamp } from '../fields.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';
import { basicUser } from './user-schema.ts';

const TAGS = ['members'];
const params = z.object({ organization_id: z.string() });
const memberParams = params.extend({ user_uuid: z.string() });

const member = z
  .object({
    id: z.guid(),
    user: basicUser,
    level: z.int(),
    joined_at: timestamp,
    updated_at: timestamp,
    is_2fa_enabled: z.boolean(),
    has_social_auth: z.boolean(),
    last_login: timestamp.nullable(),
  })
  .meta({ id: 'Member' });

const levels = z.literal([MEMBER, ADMIN, OWNER]);

/** Shows a member. Users have keys only, so there is no second factor or social login to report. */
function memberView(row: MemberRow): z.output<typeof member> {
  return {
    id: row.id,
    user: row.user,
    level: row.level,
    joined_at: row.joined_at,
    updated_at: row.updated_at,
    is_2fa_enabled: false,
    has_social_auth: false,
    last_login: row.last_login,
  };
}

export function memberRoutes(app: App, { pool, config }: ApiDependencies): void {
  const find = async (queryable: Parameters<typeof findMember>[0], organizationId: string, uuid: string) => {
    const row = isUuid(uuid) ? await findMember(queryable, organizationId, uuid) : undefined;
    if (!row) throw errors.notFound();
    return row;
  };

  app.get(
    '/api/organizations/:organization_id/members/',
    {
      config: { access: { scope: 'organization_member:read' } },
      schema: {
        tags: TAGS,
        summary: 'List the members of an organization',
        params,
        querystring: pageQuery.extend({
          order: z
            .unknown()
            .optional()
            .meta({ type: 'string', description: 'The order: `joined_at`, or `-joined_at` (the default).' }),
          email: z
            .string()
            .max(400)
            .optional()
            .meta({ description: 'Only the member with this email, in any case.' }),
          search: z.string().max(200).optional().meta({
            description: 'Only members whose email or name has these words in it, each of them, in any case.',
          }),
        }),
        response: { 200: page(member) },
      },
    },
    async (request) => {
      const wanted = pageOf(request.query);
      const order = request.query.order === 'joined_at' ? 'joined_at' : '-joined_at';
      const { email, search = '' } = request.query;
      const words = search.split(/\s+/).filter((word) => word !== '');
      const options = { order, ...wanted, email, search: words } as const;
      const { count, rows } = await listMembers(pool, request.organization.id, options);
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, rows.map(memberView));
    },
  );

  app.get(
    '/api/organizations/:organization_id/members/:user_uuid/',
    {
      config: { access: { scope: 'organization_member:read' } },
      schema: { tags: TAGS, summary: 'Retrieve a member', params: memberParams, response: { 200: member } },
    },
    async (request) => memberView(await find(pool, request.organization.id, request.params.user_uuid)),
  );

  app.patch(
    '/api/organizations/:organization_id/members/:user_uuid/',
    {
      config: { access: { scope: 'organization_member:write', level: ADMIN } },
      // Looks the member up before the body is validated, so that an unknown member is a 404 whatever the body says.
      preValidation: async ({ organization, params: { user_uuid: uuid } }) => {
        await find(pool, organization.id, uuid);
      },
      schema: {
        tags: TAGS,
        summary: "Change a member's level",
        description:
          'The levels are 1 (member), 8 (admin) and 15 (owner). An owner who makes somebody else the owner becomes an admin.',
        params: memberParams,
        body: z.object({ level: levels.optional() }),
        response: { 200: member },
      },
    },
    async (request) => {
      const { organization, caller, body } = request;
      return transaction(pool, async (client) => {
        await lockMemberships(client, organization.id);
        const target = await find(client, organization.id, request.params.user_uuid);
        const own = await find(client, organization.id, caller.user.uuid);
        if (body.level === undefined || body.level === target.level) return memberView(target);
        if (target.user_id === caller.user.id) {
          throw errors.permissionDenied("You can't change your own access level.");
        }
        if (own.level < ADMIN)
          throw errors.permissionDenied('Your organization access level is insufficient.');
        if (target.level > own.level || body.level > own.level) {
          throw errors.permissionDenied(
            'You can only change access level of others to lower or equal to your current one.',
          );
        }
        if (body.level === OWNER) await setLevel(client, own.id, ADMIN);
        await setLevel(client, target.id, body.level);
        await audit(client, actorOf(request), {
          scope: 'OrganizationMembership',
          itemId: target.id,
          activity: 'updated',
          organizationId: organization.id,
          detail: { changes: [{ field: 'level', before: target.level, after: body.level }] },
        });
        return memberView(await find(client, organization.id, request.params.user_uuid));
      });
    },
  );

  app.delete(
    '/api/organizations/:organization_id/members/:user_uuid/',
    {
      config: { access: { scope: 'organization_member:write' } },
      schema: {
        tags: TAGS,
        summary: 'Remove a member, or leave the organization',
        params: memberParams,
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      const { organization, caller } = request;
      await transaction(pool, async (client) => {
        await lockMemberships(client, organization.id);
        const target = await find(client, organization.id, request.params.user_uuid);
        const own = await find(client, organization.id, caller.user.uuid);
        const leaving = target.user_id === caller.user.id;
        if (!leaving && own.level < ADMIN) {
          throw errors.permissionDenied('Your organization access level is insufficient.');
        }
        if (target.level === OWNER) {
          throw errors.permissionDenied(
            'The owner cannot be removed from the organization. Make somebody else the owner first.',
          );
        }
        if (target.level > own.level) {
          throw errors.permissionDenied('You cannot remove a member with a higher access level than yours.');
        }
        await deleteMembership(client, target.id);
        await audit(client, actorOf(request), {
          scope: 'OrganizationMembership',
          itemId: target.id,
          activity: 'deleted',
          organizationId: organization.id,
          detail: { user: target.user.uuid },
        });
      });
      return reply.code(204).send(null);
    },
  );
}
