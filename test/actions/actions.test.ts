import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { lockNamesake } from '../../actions/rows/actions.ts';
import { LOCK_KINDS } from '../../actions/rows/locks.ts';
import { transaction } from '../../db/pool.ts';
import { eventually } from '../support/eventually.ts';
import { queriesOf } from '../support/query-log.ts';
import { refusals } from '../support/refusals.ts';
import { actionsForFile, NOTHING, type Shown } from './support.ts';

const { api, tenants, at, ask, create } = actionsForFile();

describe('an action', () => {
  test('is created with defaults, and shown the same way everywhere', async () => {
    const made = await create({ name: ' Signed up ', steps: [{ event: 'signup' }] });
    expect(made).toEqual({
      id: expect.any(Number),
      team_id: tenants.anna.projectId,
      name: 'Signed up',
      description: '',
      tags: [],
      post_to_slack: false,
      slack_message_format: '',
      steps: [{ ...NOTHING, event: 'signup' }],
      created_at: expect.stringMatching(/Z$/),
      created_by: expect.objectContaining({
        id: tenants.anna.userId,
        uuid: tenants.anna.userUuid,
        email: tenants.anna.email,
      }),
      updated_at: expect.stringMatching(/Z$/),
      deleted: false,
      is_calculating: false,
      last_calculated_at: expect.stringMatching(/Z$/),
      is_action: true,
      bytecode: ['_H', 1, 32, 'signup', 32, 'event', 1, 1, 11],
      bytecode_error: null,
      pinned_at: null,
      creation_context: null,
    });
    expect((await ask('GET', `${made.id}/`)).json()).toEqual(made);
    const list = await api.request(
      tenants.anna,
      'GET',
      `/api/environments/${tenants.anna.projectId}/actions/?limit=1`,
    );
    expect(list.json()).toMatchObject({ results: [made] });
  });

  test('needs nothing, not even a name or a body', async () => {
    const [one, other] = [await create({}), await create({ name: '' })];
    expect([one.name, other.name, one.bytecode]).toEqual([null, '', ['_H', 1, 29]]);
    const bare = await api.request(tenants.anna, 'POST', at(tenants.anna), undefined);
    expect(bare.statusCode).toBe(201);
  });

  test('keeps tags in lower case, each once, and ignores what it does not know', async () => {
    const body = {
      tags: [' Growth', 'growth', 'WEB', ' '],
      id: 7,
      _create_in_folder: 'x',
      selector_regex: 1,
    };
    const made = await create({ ...body, steps: [{ event: 'a', selector_regex: 'x', unknown: 1 }] });
    expect(made.tags).toEqual(['growth', 'web']);
    expect(made).not.toHaveProperty('_create_in_folder');
    expect(made.steps).toEqual([{ ...NOTHING, event: 'a' }]);
  });

  test.each([
    [true, expect.stringMatching(/Z$/)],
    ['2026-01-02T03:04:05+01:00', expect.stringMatching(/^2026-01-02T02:04:05/)],
    [false, null],
    ['', null],
    [null, null],
  ])('is pinned by %j', async (pinned_at, shown) => {
    const made = await create({ pinned_at });
    expect(made.pinned_at).toEqual(shown);
    const changed = await ask('PATCH', `${made.id}/`, { pinned_at: false });
    expect(changed.json()).toMatchObject({ pinned_at: null });
  });

  test('is changed by PATCH and PUT; what they leave out stays', async () => {
    const made = await create({ name: 'Bought', description: 'paid', steps: [{ event: 'buy' }] });
    const patched = await ask('PATCH', `${made.id}/`, { steps: [{ event: 'paid', url: '/shop' }] });
    expect(patched.statusCode).toBe(200);
    expect(patched.json()).toMatchObject({
      name: 'Bought',
      description: 'paid',
      steps: [{ ...NOTHING, event: 'paid', url: '/shop' }],
    });
    expect(patched.json().bytecode).not.toEqual(made.bytecode);
    const put = await ask('PUT', `${made.id}/`, { name: 'Paid' });
    expect(put.json()).toMatchObject({
      name: 'Paid',
      description: 'paid',
      bytecode: patched.json().bytecode,
    });
    expect(put.json().last_calculated_at).toBe(patched.json().last_calculated_at);
  });

  test('is deleted by a PATCH alone, and brought back by a PATCH', async () => {
    const made = await create({ name: 'Left', steps: [{ event: 'leave' }] });
    const url = `${made.id}/`;
    const forbidden = await ask('DELETE', url);
    expect([forbidden.statusCode, forbidden.headers.allow]).toEqual([405, 'GET, HEAD, OPTIONS, PATCH, PUT']);
    expect((await ask('PATCH', url, { deleted: true })).json()).toMatchObject({ deleted: true });
    for (const [method, body] of [
      ['GET', undefined],
      ['PATCH', { name: 'x' }],
      ['PATCH', { deleted: true }],
      ['PUT', { deleted: false }],
    ] as const) {
      const answer = await ask(method, url, body);
      expect([method, answer.statusCode, answer.json()]).toEqual([method, 404, refusals.notFound()]);
    }
    const listed = (await ask('GET', '?limit=1000')).json().results as Shown[];
    expect(listed.map((one) => one.id)).not.toContain(made.id);
    const back = await ask('PATCH', url, { deleted: false });
    expect([back.statusCode, back.json().deleted, back.json().bytecode]).toEqual([200, false, made.bytecode]);
    expect((await ask('GET', url)).statusCode).toBe(200);
  });

  test('has a name of its own among those that are not deleted', async () => {
    const taken = await create({ name: 'Taken' });
    const refused = (id: number) =>
      refusals.field('name', 'unique', `This project already has an action with this name, ID ${id}`);
    const again = await ask('POST', '', { name: 'Taken' });
    expect([again.statusCode, again.json()]).toEqual([400, refused(taken.id)]);
    const other = await create({ name: 'Other' });
    expect((await ask('PATCH', `${other.id}/`, { name: 'Taken' })).json()).toEqual(refused(taken.id));
    expect((await ask('PATCH', `${taken.id}/`, { name: 'Taken' })).statusCode).toBe(200);
    await create({ name: 'Taken' }, tenants.ben);
    await ask('PATCH', `${taken.id}/`, { deleted: true });
    expect((await ask('PATCH', `${other.id}/`, { name: 'Taken' })).statusCode).toBe(200);
    expect((await ask('PATCH', `${taken.id}/`, { deleted: false })).json()).toEqual(refused(other.id));
  });

  test('gets a name once, however many ask at the same time', async () => {
    let answer: ReturnType<typeof ask> | undefined;
    let isAnswered = false;
    await transaction(api.pool, async (client) => {
      // Somebody else has asked for the name and not saved yet.
      expect(await lockNamesake(client, tenants.anna.projectId, 'Race', null)).toBeUndefined();
      answer = ask('POST', '', { name: 'Race' }).finally(() => {
        isAnswered = true;
      });
      await eventually(async () => {
        const { rows } = await api.pool.query(
          `select from pg_locks where locktype = 'advisory' and classid = $1 and not granted`,
          [LOCK_KINDS.actionNames],
        );
        return isAnswered || rows.length > 0;
      });
      await client.query(
        `insert into actions (project_id, name, steps, bytecode) values ($1, 'Race', '[]', '[]')`,
        [tenants.anna.projectId],
      );
    });
    expect((await answer)?.json()).toMatchObject({ attr: 'name', code: 'unique' });
  });

  test('is written into the activity log', async () => {
    const olga = await api.createTenant('Olga');
    const made = await create({ name: 'Logged' }, olga);
    await ask('PATCH', `${made.id}/`, { name: 'Renamed' }, olga);
    await ask('PATCH', `${made.id}/`, { deleted: true }, olga);
    await ask('PATCH', `${made.id}/`, { deleted: false }, olga);
    const log = await api.request(olga, 'GET', `/api/projects/${olga.projectId}/activity_log/`);
    const entries = (log.json().results as Record<string, unknown>[]).filter((one) => one.scope === 'Action');
    expect(entries.map(({ activity, item_id, detail }) => [activity, item_id, detail]).reverse()).toEqual([
      ['created', String(made.id), { name: 'Logged' }],
      [
        'updated',
        String(made.id),
        { name: 'Renamed', changes: [{ field: 'name', before: 'Logged', after: 'Renamed' }] },
      ],
      [
        'deleted',
        String(made.id),
        { name: 'Renamed', changes: [{ field: 'deleted', before: false, after: true }] },
      ],
      [
        'updated',
        String(made.id),
        { name: 'Renamed', changes: [{ field: 'deleted', before: true, after: false }] },
      ],
    ]);
  });
});

test('projects that become one may have actions of the same name', async () => {
  const olga = await api.createTenant('Olga');
  const made = await api.request(olga, 'POST', '/api/projects/', { name: 'target' });
  const target = { ...olga, projectId: made.json().id };
  const ids = [(await create({ name: 'Same' }, olga)).id, (await create({ name: 'Same' }, target)).id];
  const url = `/api/organizations/${olga.organizationId}/environments_rollback/`;
  const moved = await api.request(olga, 'POST', url, { [olga.projectId]: target.projectId });
  expect(moved.statusCode).toBe(200);
  const list = (await ask('GET', '', undefined, target)).json().results as Shown[];
  expect(list.map((one) => one.id).sort()).toEqual(ids.sort());
});

describe('actions of another project', () => {
  test('are like actions that do not exist: the answer, and the queries', async () => {
    const { id } = await create({ name: 'Of Ben', steps: [{ event: 'secret' }] }, tenants.ben);
    const observe = async (method: string, of: number) => {
      const body = method === 'GET' ? undefined : { name: 'taken over', deleted: false };
      const { result, queries } = await queriesOf(() => ask(method, `${of}/`, body));
      return {
        status: result.statusCode,
        body: result.json(),
        queries: queries.map((one) => one.replace(String(of), '')),
      };
    };
    for (const method of ['GET', 'PUT', 'PATCH']) {
      const theirs = await observe(method, id);
      expect(theirs).toEqual(await observe(method, 2_147_483_000));
      expect([theirs.status, theirs.body]).toEqual([404, refusals.notFound()]);
    }
    expect((await ask('GET', '?limit=1000')).body).not.toContain('Of Ben');
    const answer = await api.request(tenants.anna, 'GET', at(tenants.ben));
    expect([answer.statusCode, answer.json()]).toEqual([404, refusals.notFound('Project not found.')]);
    expect((await ask('GET', `${id}/`, undefined, tenants.ben)).json()).toMatchObject({ name: 'Of Ben' });
  });

  test('and of this one need the scope', async () => {
    const [reader, none] = [
      await api.createKey(tenants.anna, { scopes: ['action:read'] }),
      await api.createKey(tenants.anna, { scopes: ['query:read'] }),
    ];
    expect((await api.request(reader.value, 'GET', at(tenants.anna))).statusCode).toBe(200);
    const refused = await api.request(reader.value, 'POST', at(tenants.anna), {});
    expect([refused.statusCode, refused.json()]).toEqual([403, refusals.scope('action:write')]);
    expect((await api.request(none.value, 'GET', at(tenants.anna))).json()).toEqual(
      refusals.scope('action:read'),
    );
  });
});

test('the examples of the documentation are taken', async () => {
  const page = readFileSync(path.resolve(import.meta.dirname, '../../docs/actions.md'), 'utf8');
  const [created, changed] = [...page.matchAll(/ -d '(\{[^']+\})'/g)].map((match) =>
    JSON.parse(match[1] as string),
  );
  const made = await create(created);
  expect(made.steps).toHaveLength(2);
  expect((await ask('PATCH', `${made.id}/`, changed)).json()).toMatchObject({ deleted: true });
});
