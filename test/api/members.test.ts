import { describe, expect, test } from '@jest/globals';
import { ADMIN, type Level, MEMBER, OWNER } from '../../tenancy/levels.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { refusals } from '../support/refusals.ts';

const api = apiForFile();
const membersOf = (tenant: Tenant) => `/api/organizations/${tenant.organizationId}/members/`;

async function crew() {
  const owner = await api.createTenant('Owner');
  const admin = await api.createMember(owner, 'Admin', ADMIN);
  const admin2 = await api.createMember(owner, 'Second admin', ADMIN);
  const member = await api.createMember(owner, 'Member', MEMBER);
  const member2 = await api.createMember(owner, 'Second member', MEMBER);
  return { owner, admin, admin2, member, member2 };
}
type Role = keyof Awaited<ReturnType<typeof crew>>;

async function levelOf(of: Tenant, who: Tenant): Promise<number | undefined> {
  const answer = await api.request(of, 'GET', `${membersOf(of)}${who.userUuid}/`);
  return answer.json().level;
}

async function lastUse({ keyId }: Tenant): Promise<string | null> {
  const { rows } = await api.pool.query('select last_used_at from personal_api_keys where id = $1', [keyId]);
  return rows[0].last_used_at;
}

describe('members', () => {
  test('are found by their email, or by words of their emails and names', async () => {
    const { owner, member } = await crew();
    const stranger = await api.createTenant('Admin');
    await api.pool.query("update users set first_name = 'Zoë', last_name = 'O_Neil' where id = $1", [
      member.userId,
    ]);
    const find = async (query: string) => {
      const answer = await api.request(owner, 'GET', `${membersOf(owner)}?${new URLSearchParams(query)}`);
      const { count, results } = answer.json() as {
        count: number;
        results: { user: { first_name: string } }[];
      };
      expect(count).toBe(results.length);
      return results.map((one) => one.user.first_name).sort();
    };
    expect(await find(`email=${member.email.toUpperCase()}`)).toEqual(['Zoë']);
    expect(await find(`email=${stranger.email}`)).toEqual([]);
    expect(await find('email=example.com')).toEqual([]);
    expect(await find('email=')).toEqual([]);
    expect(await find('search=admin')).toEqual(['Admin', 'Second admin']);
    expect(await find('search=ADMIN second')).toEqual(['Second admin']);
    expect(await find('search=zo\u00cb neil')).toEqual(['Zoë']);
    expect(await find('search=o_n')).toEqual(['Zoë']);
    expect(await find('search=o%n')).toEqual([]);
    expect(await find('search= ')).toHaveLength(5);
    const long = await api.request(owner, 'GET', `${membersOf(owner)}?search=${'a'.repeat(201)}`);
    expect(long.json()).toMatchObject({ attr: 'search', detail: expect.stringContaining('200 characters') });
    const page = await api.request(owner, 'GET', `${membersOf(owner)}?search=admin&limit=1`);
    expect(page.json()).toMatchObject({ count: 2, next: expect.stringContaining('search=admin') });
  });

  test('are listed newest first, or oldest first when asked', async () => {
    const { owner, admin, admin2, member, member2 } = await crew();
    await api.request(owner, 'GET', '/api/users/@me/');
    await eventually(async () => (await lastUse(owner)) !== null);
    const list = (await api.request(member, 'GET', membersOf(owner))).json();
    const ids = (body: typeof list) => body.results.map((one: { user: { uuid: string } }) => one.user.uuid);
    const order = [owner, admin, admin2, member, member2].map((one) => one.userUuid);
    expect(ids(list)).toEqual(order.toReversed());
    const oldest = (await api.request(owner, 'GET', `${membersOf(owner)}?order=joined_at`)).json();
    expect(ids(oldest)).toEqual(order);
    expect(oldest.results[0]).toEqual({
      id: expect.stringMatching(/-7/),
      user: {
        id: owner.userId,
        uuid: owner.userUuid,
        distinct_id: expect.stringMatching(/^[a-z0-9]{40}$/),
        first_name: 'Owner',
        last_name: '',
        email: owner.email,
        is_email_verified: null,
        hedgehog_config: null,
        role_at_organization: null,
      },
      level: 15,
      joined_at: expect.stringMatching(/Z$/),
      updated_at: expect.stringMatching(/Z$/),
      is_2fa_enabled: false,
      has_social_auth: false,
      last_login: expect.stringMatching(/Z$/),
    });
  });

  test.each([
    // who, whom, to level, status, detail
    ['owner', 'member', ADMIN, 200, ''],
    ['owner', 'admin', MEMBER, 200, ''],
    ['admin', 'member', ADMIN, 200, ''],
    ['admin', 'admin2', MEMBER, 200, ''],
    ['admin', 'member', OWNER, 403, 'lower'],
    ['admin', 'owner', MEMBER, 403, 'lower'],
    ['owner', 'owner', ADMIN, 403, 'own'],
    ['admin', 'admin', MEMBER, 403, 'own'],
    ['admin', 'admin', ADMIN, 200, ''],
    ['member', 'member2', ADMIN, 403, 'level'],
    ['member', 'member', ADMIN, 403, 'level'],
  ] as [Role, Role, Level, number, string][])(
    '%s sets %s to %i: %i',
    async (who, whom, level, status, why) => {
      const people = await crew();
      const before = await levelOf(people.owner, people[whom]);
      const url = `${membersOf(people.owner)}${people[whom].userUuid}/`;
      const answer = await api.request(people[who], 'PATCH', url, { level });
      expect(answer.statusCode).toBe(status);
      expect(await levelOf(people.owner, people[whom])).toBe(status === 200 ? level : before);
      const details: Record<string, string> = {
        lower: 'You can only change access level of others to lower or equal to your current one.',
        own: "You can't change your own access level.",
        level: 'Your organization access level is insufficient.',
      };
      if (why) expect(answer.json()).toEqual(refusals.denied(details[why] as string));
      else expect(answer.json().level).toBe(level);
    },
  );

  test('giving ownership away makes the giver an admin, and there is one owner', async () => {
    const { owner, admin, member } = await crew();
    const given = await api.request(owner, 'PATCH', `${membersOf(owner)}${member.userUuid}/`, {
      level: OWNER,
    });
    expect([given.statusCode, given.json().level]).toEqual([200, 15]);
    expect(await levelOf(owner, owner)).toBe(ADMIN);
    expect(
      (await api.request(owner, 'DELETE', `/api/organizations/${owner.organizationId}/`)).statusCode,
    ).toBe(403);
    const back = await api.request(owner, 'PATCH', `${membersOf(owner)}${admin.userUuid}/`, { level: OWNER });
    expect(back.statusCode).toBe(403);
  });

  test('two gifts at once: one is accepted', async () => {
    const { owner, admin, member } = await crew();
    const answers = await Promise.all(
      [admin, member].map((one) =>
        api.request(owner, 'PATCH', `${membersOf(owner)}${one.userUuid}/`, { level: OWNER }),
      ),
    );
    expect(answers.map((one) => one.statusCode).sort()).toEqual([200, 403]);
    const { rows } = await api.pool.query(
      'select count(*)::int as owners from organization_memberships where organization_id = $1 and level = 15',
      [owner.organizationId],
    );
    expect(rows).toEqual([{ owners: 1 }]);
  });

  test.each([
    [{ level: 3 }, 'invalid_choice', '3 is not a valid choice.'],
    [{ level: '8' }, 'invalid_choice', '"8" is not a valid choice.'],
    [{ level: null }, 'null', 'This field may not be null.'],
  ])('refuses %j', async (body, code, detail) => {
    const { owner, member } = await crew();
    const answer = await api.request(owner, 'PATCH', `${membersOf(owner)}${member.userUuid}/`, body);
    expect([answer.statusCode, answer.json()]).toEqual([400, refusals.field('level', code, detail)]);
  });

  test('a patch of nothing changes nothing, and a form is understood', async () => {
    const { owner, member } = await crew();
    const url = `${membersOf(owner)}${member.userUuid}/`;
    expect((await api.request(owner, 'PATCH', url, {})).json().level).toBe(MEMBER);
    const form = await api.request(owner, 'PATCH', url, 'level=8', {
      'content-type': 'application/x-www-form-urlencoded',
    });
    expect([form.statusCode, form.json().level]).toEqual([200, ADMIN]);
  });

  test.each([
    ['owner', 'admin', 204, ''],
    ['admin', 'admin2', 204, ''],
    ['admin', 'member', 204, ''],
    ['member', 'member', 204, ''],
    ['admin', 'admin', 204, ''],
    ['member', 'member2', 403, 'Your organization access level is insufficient.'],
    [
      'admin',
      'owner',
      403,
      'The owner cannot be removed from the organization. Make somebody else the owner first.',
    ],
    [
      'owner',
      'owner',
      403,
      'The owner cannot be removed from the organization. Make somebody else the owner first.',
    ],
  ] as [Role, Role, number, string][])('%s removes %s: %i', async (who, whom, status, detail) => {
    const people = await crew();
    const url = `${membersOf(people.owner)}${people[whom].userUuid}/`;
    const answer = await api.request(people[who], 'DELETE', url);
    expect(answer.statusCode).toBe(status);
    if (detail) expect(answer.json()).toEqual(refusals.denied(detail));
    const place = `/api/organizations/${people.owner.organizationId}/`;
    const seen = await api.request(people[whom], 'GET', place);
    expect(seen.statusCode).toBe(status === 204 ? 404 : 200);
  });

  test('somebody who left works in an organization of their own again', async () => {
    const { owner, member } = await crew();
    await api.request(member, 'PATCH', '/api/users/@me/', { set_current_team: owner.projectId });
    await api.request(member, 'DELETE', `${membersOf(owner)}${member.userUuid}/`);
    const current = await api.request(member, 'GET', '/api/organizations/@current/');
    expect(current.json().id).toBe(member.organizationId);
    expect((await api.request(member, 'GET', '/api/projects/@current/')).json().id).toBe(member.projectId);
  });

  test('unknown people are not found, before the body is looked at', async () => {
    const { owner } = await crew();
    const stranger = await api.createTenant('Stranger');
    for (const uuid of [stranger.userUuid, '01900000-0000-7000-8000-000000000000', 'x', '%00']) {
      const url = `${membersOf(owner)}${uuid}/`;
      for (const method of ['GET', 'PATCH', 'DELETE']) {
        const answer = await api.request(owner, method, url, method === 'PATCH' ? { level: 'x' } : undefined);
        expect([method, uuid, answer.statusCode, answer.json()]).toEqual([
          method,
          uuid,
          404,
          refusals.notFound(),
        ]);
      }
    }
  });
});
