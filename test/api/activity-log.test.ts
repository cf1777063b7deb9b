import { describe, expect, test } from '@jest/globals';
import { MEMBER } from '../../tenancy/levels.ts';
import { apiForFile } from '../support/api.ts';
import { refusals } from '../support/refusals.ts';

const api = apiForFile();

describe('the activity log', () => {
  test('tells who changed what, newest first, and no secret', async () => {
    const anna = await api.createTenant('Anna');
    const organization = `/api/organizations/${anna.organizationId}/`;
    const project = `/api/projects/${anna.projectId}/`;
    await api.request(anna, 'PATCH', organization, { name: 'New name' }, { 'x-request-id': 'request-1' });
    await api.request(anna, 'PATCH', project, { timezone: 'Asia/Tokyo' });
    const rotated = await api.request(anna, 'PATCH', `${project}rotate_secret_token/`);
    const log = (await api.request(anna, 'GET', `${organization}activity_log/`)).json();
    expect(log.count).toBe(3);
    expect(log.results.map((one: { scope: string; activity: string }) => [one.scope, one.activity])).toEqual([
      ['Project', 'rolled'],
      ['Project', 'updated'],
      ['Organization', 'updated'],
    ]);
    expect(log.results[2]).toEqual({
      id: expect.stringMatching(/-7/),
      created_at: expect.stringMatching(/Z$/),
      organization_id: anna.organizationId,
      project_id: null,
      actor: 'user',
      user_id: anna.userId,
      personal_api_key_id: anna.keyId,
      ip: '127.0.0.1',
      request_id: 'request-1',
      scope: 'Organization',
      item_id: anna.organizationId,
      activity: 'updated',
      detail: { changes: [{ field: 'name', before: 'Anna', after: 'New name' }] },
    });
    expect(JSON.stringify(log)).not.toContain(rotated.json().secret_api_token);
    const ofProject = (await api.request(anna, 'GET', `${project}activity_log/`)).json();
    expect(ofProject.results).toEqual(log.results.slice(0, 2));
  });

  test('can be asked for one kind of thing, or for one thing', async () => {
    const anna = await api.createTenant('Anna');
    const project = `/api/projects/${anna.projectId}/`;
    const ids: string[] = [];
    for (const name of ['one', 'two']) {
      const made = await api.request(anna, 'POST', `${project}hog_functions/`, { hog: 'return 1', name });
      ids.push(made.json().id);
    }
    await api.request(anna, 'PATCH', `${project}hog_functions/${ids[0]}/`, { name: 'first' });
    await api.request(anna, 'PATCH', project, { timezone: 'Asia/Tokyo' });
    const asked = async (query: string) => {
      const { count, results } = (await api.request(anna, 'GET', `${project}activity_log/${query}`)).json();
      const shown = results.map((one: { scope: string; activity: string }) => `${one.scope} ${one.activity}`);
      return [count, ...shown];
    };
    const [made, changed] = ['HogFunction created', 'HogFunction updated'];
    expect(await asked('')).toEqual([4, 'Project updated', changed, made, made]);
    expect(await asked('?scope=HogFunction')).toEqual([3, changed, made, made]);
    expect(await asked(`?scope=HogFunction&item_id=${ids[0]}`)).toEqual([2, changed, made]);
    expect(await asked(`?scope=Project&item_id=${ids[0]}`)).toEqual([0]);
    expect(await asked('?scope=%00')).toEqual([0]);
  });

  test('of the organization is for admins, of a project for members', async () => {
    const owner = await api.createTenant('Owner');
    const member = await api.createMember(owner, 'Member', MEMBER);
    const refused = await api.request(
      member,
      'GET',
      `/api/organizations/${owner.organizationId}/activity_log/`,
    );
    expect([refused.statusCode, refused.json()]).toEqual([403, refusals.level]);
    expect(
      (await api.request(member, 'GET', `/api/projects/${owner.projectId}/activity_log/`)).statusCode,
    ).toBe(200);
  });

  test('cannot be changed, not even in the database', async () => {
    const anna = await api.createTenant('Anna');
    await api.request(anna, 'PATCH', '/api/organizations/@current/', { name: 'x' });
    for (const sql of ['update activity_log set scope = $1', 'delete from activity_log where scope <> $1']) {
      await expect(api.pool.query(sql, ['x'])).rejects.toThrow('activity_log is append-only');
    }
  });

  test('ends a page of very large entries early, and links to the rest', async () => {
    const emil = await api.createTenant('Emil');
    await api.pool.query(
      `insert into activity_log (id, organization_id, scope, item_id, activity, detail)
       select gen_random_uuid(), $1, 'Organization', '', 'updated', json_build_object('text', repeat('x', 500000))
       from generate_series(1, 40)`,
      [emil.organizationId],
    );
    const page = async (query: string) =>
      (
        await api.request(emil, 'GET', `/api/organizations/${emil.organizationId}/activity_log/${query}`)
      ).json();
    const first = await page('?limit=1000');
    expect(first.results.length).toBe(33);
    const second = await page(new URL(first.next).search);
    expect([second.next, first.results.length + second.results.length]).toEqual([null, first.count]);
  });

  test('a change that fails leaves no trace of itself', async () => {
    const anna = await api.createTenant('Anna');
    await api.request(anna, 'PATCH', '/api/users/@me/', {
      first_name: 'Other',
      set_current_team: 999_999_999,
    });
    const { rows } = await api.pool.query('select 1 from activity_log where user_id = $1', [anna.userId]);
    expect(rows).toEqual([]);
    expect((await api.request(anna, 'GET', '/api/users/@me/')).json().first_name).toBe('Anna');
  });

  test('writes down addresses that Postgres can hold, and none that only look like one', async () => {
    const anna = await api.createTenant('Anna');
    const seen: unknown[] = [];
    for (const remoteAddress of ['fe80::1%eth0', '::ffff:10.0.0.1', 'not-an-address']) {
      const answer = await api.app.inject({
        method: 'PATCH',
        url: '/api/organizations/@current/',
        headers: { authorization: `Bearer ${anna.key}` },
        payload: { name: remoteAddress },
        remoteAddress,
      });
      expect(answer.statusCode).toBe(200);
      const log = await api.request(anna, 'GET', '/api/organizations/@current/activity_log/?limit=1');
      seen.push(log.json().results[0].ip);
    }
    expect(seen).toEqual(['fe80::1', '::ffff:10.0.0.1', null]);
  });
});
