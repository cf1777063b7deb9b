import { z } from 'zod';
import { countMemberships } from '../../db/memberships.ts';
import {
  deletePersonalApiKey,
  findPersonalApiKey,
  listPersonalApiKeys,
  type PersonalApiKeyRow,
  updatePersonalApiKey,
} from '../../db/personal-api-keys.ts';
import { type Queryable, transaction } from '../../db/pool.ts';
import { countMemberProjects } from '../../db/projects.ts';
import { audit, changes } from '../../tenancy/audit.ts';
import {
  issuePersonalApiKey,
  rollPersonalApiKey,
  TooManyKeysError,
} from '../../tenancy/personal-api-keys.ts';
import { allScopes } from '../../tenancy/scopes.ts';
import { type Caller, requireUnlimited } from '../access.ts';
import { actorOf } from '../actor.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { keyBodies, personalApiKey, personalApiKeyView } from './personal-api-key-schema.ts';

const TAGS = ['personal API keys'];
const params = z.object({ key_id: z.string() });
const KEY_ID = /^[0-9A-Za-z]{1,40}$/;

interface Bounds {
  scoped_teams?: number[] | undefined;
  scoped_organizations?: string[] | undefined;
}

/** Refuses bounds to projects or organizations of which the user is not a member. */
async function requireOwnPlaces(queryable: Queryable, userId: number, bounds: Bounds): Promise<void> {
  const teams = [...new Set(bounds.scoped_teams ?? [])];
  if ((await countMemberProjects(queryable, userId, teams)) < teams.length) {
    throw errors.validation(
      'invalid_input',
      'You must be a member of all teams that you are scoping the key to.',
      'scoped_teams',
    );
  }
  const organizations = [...new Set((bounds.scoped_organizations ?? []).map((id) => id.toLowerCase()))];
  if ((await countMemberships(queryable, userId, organizations)) < organizations.length) {
    throw errors.validation(
      'invalid_input',
      'You must be a member of all organizations that you are scoping the key to.',
      'scoped_organizations',
    );
  }
}

export function personalApiKeyRoutes(app: App, { pool, products }: ApiDependencies): void {
  const { newPersonalApiKey, personalApiKeyPatch } = keyBodies(allScopes(products));

  async function find(caller: Caller, id: string): Promise<PersonalApiKeyRow> {
    const wanted = id === '@current' ? caller.key.id : id;
    const row = KEY_ID.test(wanted) ? await findPersonalApiKey(pool, caller.user.id, wanted) : undefined;
    if (!row) throw errors.notFound();
    return row;
  }
  /** Looks the key up before the body is validated, so that an unknown key is a 404 whatever the body says. */
  const requireFound = async (request: { caller: Caller; params: unknown }) => {
    await find(request.caller, (request.params as { key_id: string }).key_id);
  };

  app.get(
    '/api/personal_api_keys/',
    {
      config: { access: { scope: '*' } },
      schema: {
        tags: TAGS,
        summary: "List the caller's keys, newest first",
        response: { 200: z.array(personalApiKey) },
      },
    },
    async (request) => {
      const rows = await listPersonalApiKeys(pool, request.caller.user.id);
      return rows.map((row) => personalApiKeyView(row));
    },
  );

  app.post(
    '/api/personal_api_keys/',
    {
      config: { access: { scope: '*' } },
      schema: {
        tags: TAGS,
        summary: 'Create a key',
        description: 'Only this answer contains the value of the key. It cannot be shown again.',
        body: newPersonalApiKey,
        response: { 201: personalApiKey },
      },
    },
    async (request, reply) => {
      const { caller, body } = request;
      const issued = await transaction(pool, async (client) => {
        await requireOwnPlaces(client, caller.user.id, body);
        const created = await issuePersonalApiKey(client, {
          userId: caller.user.id,
          label: body.label,
          scopes: body.scopes,
          scopedTeams: body.scoped_teams,
          scopedOrganizations: body.scoped_organizations,
          expiresAt: body.expires_at,
        });
        await audit(client, actorOf(request), {
          scope: 'PersonalAPIKey',
          itemId: created.row.id,
          activity: 'created',
          detail: { label: body.label, scopes: body.scopes },
        });
        return created;
      }).catch((error) => {
        if (error instanceof TooManyKeysError) throw errors.validation('invalid_input', error.message, null);
        throw error;
      });
      return reply
        .code(201)
        .header('cache-control', 'no-store')
        .send(personalApiKeyView(issued.row, issued.value));
    },
  );

  app.get(
    '/api/personal_api_keys/:key_id/',
    {
      config: { access: { scope: 'any', ignoresBounds: true } },
      schema: {
        tags: TAGS,
        summary: 'Retrieve a key',
        description:
          'A key may retrieve itself, as `@current`. Only a key with the scope `*` and no bounds may retrieve others.',
        params,
        response: { 200: personalApiKey },
      },
    },
    async (request) => {
      const { caller } = request;
      const { key_id: id } = request.params;
      const itself = id === '@current' || id === caller.key.id;
      if (!itself) requireUnlimited(caller.key);
      return personalApiKeyView(await find(caller, id));
    },
  );

  app.patch(
    '/api/personal_api_keys/:key_id/',
    {
      config: { access: { scope: '*' } },
      preValidation: requireFound,
      schema: {
        tags: TAGS,
        summary: "Change a key's label, scopes, bounds or expiry",
        params,
        body: personalApiKeyPatch,
        response: { 200: personalApiKey },
      },
    },
    async (request) => {
      const before = await find(request.caller, request.params.key_id);
      await transaction(pool, async (client) => {
        await requireOwnPlaces(client, request.caller.user.id, request.body);
        await updatePersonalApiKey(client, before.id, request.body);
        await audit(client, actorOf(request), {
          scope: 'PersonalAPIKey',
          itemId: before.id,
          activity: 'updated',
          detail: changes(before, request.body),
        });
      });
      return personalApiKeyView(await find(request.caller, before.id));
    },
  );

  app.post(
    '/api/personal_api_keys/:key_id/roll/',
    {
      config: { access: { scope: '*' } },
      schema: {
        tags: TAGS,
        summary: 'Replace the value of a key',
        description: 'The old value stops working at once. Only this answer contains the new one.',
        params,
        response: { 200: personalApiKey },
      },
    },
    async (request, reply) => {
      const { id } = await find(request.caller, request.params.key_id);
      const value = await transaction(pool, async (client) => {
        await audit(client, actorOf(request), { scope: 'PersonalAPIKey', itemId: id, activity: 'rolled' });
        return rollPersonalApiKey(client, id);
      });
      return reply
        .header('cache-control', 'no-store')
        .send(personalApiKeyView(await find(request.caller, id), value));
    },
  );

  app.delete(
    '/api/personal_api_keys/:key_id/',
    {
      config: { access: { scope: '*' } },
      schema: { tags: TAGS, summary: 'Revoke a key', params, response: { 204: z.null() } },
    },
    async (request, reply) => {
      const { id, label } = await find(request.caller, request.params.key_id);
      await transaction(pool, async (client) => {
        await deletePersonalApiKey(client, id);
        await audit(client, actorOf(request), {
          scope: 'PersonalAPIKey',
          itemId: id,
          activity: 'deleted',
          detail: { label },
        });
      });
      return reply.code(204).send(null);
    },
  );
}
