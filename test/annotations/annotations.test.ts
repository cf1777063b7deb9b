import { beforeAll, describe, expect, test } from '@jest/globals';
import { ANNOTATION_LIMITS } from '../../annotations/rules/annotations.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { refusals } from '../support/refusals.ts';

const api = apiForFile();
let anna: Tenant;
let ben: Tenant;
const of = (project: number | string, rest = '') => `/api/projects/${project}/annotations/${rest}`;
const ask = async (method: string, url: string, body?: object, who: Tenant | string = anna) => {
  const answer = await api.request(who, method, url, body);
  return { status: answer.statusCode, body: answer.body === '' ? null : answer.json() };
};
const create = async (body: object, project = anna.projectId) => {
  const made = await ask('POST', of(project), body);
  expect(made).toMatchObject({ status: 201, body: { id: expect.any(Number) } });
  return made.body as { id: number };
};
const contents = async (query = '', project = anna.projectId, who = anna) => {
  const { status, body } = await ask('GET', of(project, query), undefined, who);
  expect([status, body.count]).toEqual([200, body.results.length]);
  return body.results.map((one: { content: string }) => one.content);
};

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  ben = await api.createTenant('Ben');
});

describe('an annotation', () => {
  test('is created, read, changed, hidden and brought back', async () => {
    const made = await ask('POST', of(anna.projectId), {
      ...{
        content: 'Campaign',
        scope: 'project',
        date_marker: '2020-01-01T00:00:00.000000Z',
        team: ben.projectId,
      },
    });
    expect(made).toEqual({
      status: 201,
      body: {
        id: expect.any(Number),
        content: 'Campaign',
        date_marker: '2020-01-01T00:00:00Z',
        creation_type: 'USR',
        dashboard_item: null,
        dashboard_id: null,
        emoji: null,
        hidden_in_user_interface: null,
        dashboard_name: null,
        insight_short_id: null,
        insight_name: null,
        insight_derived_name: null,
        created_by: expect.objectContaining({ id: anna.userId, email: anna.email }),
        created_at: expect.stringMatching(/Z$/),
        updated_at: expect.stringMatching(/Z$/),
        deleted: false,
        scope: 'project',
      },
    });
    const { id } = made.body;
    expect((await ask('GET', of(anna.projectId, `${id}/`))).body).toEqual(made.body);
    expect((await ask('GET', `/api/environments/@current/annotations/${id}/`)).body).toEqual(made.body);
    const changed = await ask('PATCH', of(anna.projectId, `${id}/`), {
      content: 'Sale',
      date_marker: '2020-02-03',
    });
    expect(changed.body).toMatchObject({
      content: 'Sale',
      date_marker: '2020-02-03T00:00:00Z',
      scope: 'project',
    });
    expect(changed.body.updated_at > made.body.updated_at).toBe(true);
    expect(await ask('PATCH', of(anna.projectId, `${id}/`), { deleted: true })).toMatchObject({
      ...{ status: 200, body: { deleted: true, content: 'Sale' } },
    });
    expect(await contents()).toEqual([]);
    for (const [method, body] of [
      ['GET', undefined],
      ['PATCH', { content: 'x' }],
    ] as const) {
      expect((await ask(method, of(anna.projectId, `${id}/`), body)).status).toBe(404);
    }
    await ask('PATCH', of(anna.projectId, `${id}/`), { deleted: false });
    expect(await contents()).toEqual(['Sale']);
    const log = await ask('GET', `/api/projects/${anna.projectId}/activity_log/?scope=Annotation`);
    expect(log.body.results.map((one: { activity: string }) => one.activity)).toEqual([
      ...['updated', 'deleted', 'updated', 'created'],
    ]);
    await ask('PATCH', of(anna.projectId, `${id}/`), { deleted: true });
  });

  test('is never removed: DELETE gets 405', async () => {
    const { id } = await create({ content: 'Stays' });
    expect(await ask('DELETE', of(anna.projectId, `${id}/`))).toEqual({ status: 405, body: null });
    expect(await contents()).toEqual(['Stays']);
    await ask('PATCH', of(anna.projectId, `${id}/`), { deleted: true });
  });

  test('may have no content, and keeps the numbers of charts', async () => {
    const made = await ask('POST', of(anna.projectId), {
      dashboard_item: 7,
      dashboard_id: 8,
      creation_type: 'GIT',
    });
    expect(made.body).toMatchObject({
      ...{ content: null, date_marker: null, scope: 'dashboard_item', creation_type: 'GIT' },
      ...{ dashboard_item: 7, dashboard_id: 8 },
    });
    await ask('PATCH', of(anna.projectId, `${made.body.id}/`), { deleted: true });
  });

  test.each([
    ['🚀', '🚀'],
    ['👨‍👩‍👦', '👨‍👩‍👦'],
    ['🚀'.repeat(16), '🚀'.repeat(16)],
    ['', null],
    [null, null],
  ])('has the sign %j', async (emoji, expected) => {
    const made = await ask('POST', of(anna.projectId), { content: 'Release', emoji });
    expect([made.status, made.body.emoji]).toEqual([201, expected]);
    await ask('PATCH', of(anna.projectId, `${made.body.id}/`), { deleted: true });
  });

  test.each([
    [{ scope: 'planet' }, 'scope', 'invalid_choice'],
    [{ scope: 'recording' }, 'scope', 'invalid_input'],
    [{ emoji: '🚀'.repeat(17) }, 'emoji', 'max_length'],
    [{ hidden_in_user_interface: 'perhaps' }, 'hidden_in_user_interface', 'invalid_input'],
    [{ date_marker: 'soon' }, 'date_marker', 'invalid_input'],
    [{ date_marker: '2020-02-30' }, 'date_marker', 'invalid_input'],
    [{ content: 'x'.repeat(ANNOTATION_LIMITS.content + 1) }, 'content', 'max_length'],
    [{ content: 7 }, 'content', 'invalid_input'],
    [{ dashboard_item: 2 ** 31 }, 'dashboard_item', 'max_value'],
    [{ deleted: 'perhaps' }, 'deleted', 'invalid_input'],
  ])('%j is refused', async (body, attr, code) => {
    const { status, body: answer } = await ask('POST', of(anna.projectId), body);
    expect([status, answer.attr, answer.code]).toEqual([400, attr, code]);
  });
});

describe('the list', () => {
  let project: number;
  beforeAll(async () => {
    project = (await ask('POST', '/api/projects/', { name: 'Listed' })).body.id;
    for (const [content, date_marker, scope] of [
      ['Summer sale begins', '2026-06-01T10:00:00Z', 'project'],
      ['Winter SALE, 50%', '2026-12-01T10:00:00Z', 'dashboard_item'],
      ['No time', null, 'project'],
    ] as const)
      await create({ content, date_marker, scope }, project);
  });

  test.each([
    ['', ['No time', 'Winter SALE, 50%', 'Summer sale begins']],
    ['?search=sale', ['Winter SALE, 50%', 'Summer sale begins']],
    ['?search=SALE%20summer', ['Summer sale begins']],
    ['?search=50%25', ['Winter SALE, 50%']],
    ['?search=0%25%25', []],
    ['?search=_', []],
    ['?search=%20', ['No time', 'Winter SALE, 50%', 'Summer sale begins']],
    ['?scope=project', ['No time', 'Summer sale begins']],
    ['?scope=insight', ['Winter SALE, 50%']],
    ['?scope=dashboard_item&search=summer', []],
    ['?date_from=2026-06-01T10:00:00Z', ['Winter SALE, 50%', 'Summer sale begins']],
    ['?date_from=2026-06-02', ['Winter SALE, 50%']],
    ['?date_to=2026-06-01T10:00:00Z', ['Summer sale begins']],
    ['?date_from=2026-06-01&date_to=2026-07-01', ['Summer sale begins']],
    ['?format=json&client_query_id=x', ['No time', 'Winter SALE, 50%', 'Summer sale begins']],
  ])('%s', async (query, expected) => {
    expect(await contents(query, project)).toEqual(expected);
  });

  test('has those that are hidden in charts, and can leave them out', async () => {
    const own = (await ask('POST', '/api/projects/', { name: 'Hiding' })).body.id;
    for (const [content, hidden_in_user_interface] of [
      ['unset', null],
      ['visible', false],
      ['hidden', true],
    ] as const)
      await create({ content, scope: 'project', hidden_in_user_interface }, own);
    const shown = async (value: string) => contents(`?hidden_in_user_interface=${value}`, own);
    expect(await contents('', own)).toEqual(['hidden', 'visible', 'unset']);
    for (const value of ['true', '1']) expect(await shown(value)).toEqual(['hidden']);
    for (const value of ['false', '0', 'banana']) expect(await shown(value)).toEqual(['visible', 'unset']);
  });

  test('has pages, and a thousand by default', async () => {
    const first = await ask('GET', of(project, '?limit=2'));
    expect(first.body).toMatchObject({
      count: 3,
      next: expect.stringContaining('limit=2&offset=2'),
      previous: null,
    });
    expect((await ask('GET', of(project, '?limit=2&offset=2'))).body.results).toHaveLength(1);
    await api.pool.query(
      `insert into annotations (project_id, content, scope, creation_type)
       select $1, 'many', 'project', 'USR' from generate_series(1, 1001)`,
      [project],
    );
    expect((await ask('GET', of(project))).body.results).toHaveLength(1_000);
    await api.pool.query("delete from annotations where project_id = $1 and content = 'many'", [project]);
  });

  test.each([
    ['scope=planet', 'scope', 'Invalid scope: planet'],
    [
      'date_from=2026-07-01&date_to=2026-06-01',
      'date_from',
      'Invalid date range: date_from must be before date_to',
    ],
    ['date_from=soon', 'date_from', 'Invalid date range: date_from must be a valid ISO 8601 date'],
    ['date_to=2026-02-30', 'date_to', 'Invalid date range: date_to must be a valid ISO 8601 date'],
    ['content=x', 'content', expect.stringContaining('no field or parameter')],
  ])('?%s is refused', async (query, attr, detail) => {
    const { status, body } = await ask('GET', of(project, `?${query}`));
    expect([status, body.attr, body.detail]).toEqual([400, attr, detail]);
  });
});

describe('between projects', () => {
  test('those about the organization are shown in all of its projects, and changed in their own', async () => {
    const [home, other] = await Promise.all(
      ['Home', 'Other'].map(
        async (name) => (await ask('POST', '/api/projects/', { name })).body.id as number,
      ),
    );
    const shared = await create({ content: 'Shared', scope: 'organization' }, home);
    await create({ content: 'Own', scope: 'project' }, home);
    expect(await contents('', other)).toEqual(['Shared']);
    expect((await ask('GET', of(other as number, `${shared.id}/`))).body.content).toBe('Shared');
    expect(await ask('PATCH', of(other as number, `${shared.id}/`), { content: 'Taken' })).toEqual({
      status: 403,
      body: refusals.denied(
        'This annotation belongs to another project of the organization. Change it there.',
      ),
    });
    expect(await contents('', home)).toEqual(expect.arrayContaining(['Shared', 'Own']));
    // Another organization sees none of it.
    expect(await contents('', ben.projectId, ben)).toEqual([]);
    for (const [method, body] of [
      ['GET', undefined],
      ['PATCH', { content: 'Taken' }],
    ] as const) {
      const there = await ask(method, of(ben.projectId, `${shared.id}/`), body, ben);
      expect(there).toEqual(await ask(method, of(ben.projectId, '999999999/'), body, ben));
      expect(there.status).toBe(404);
    }
  });

  test('a project has so many at most', async () => {
    const { body } = await ask('POST', '/api/projects/', { name: 'Full' });
    await api.pool.query(
      `insert into annotations (project_id, scope, creation_type, deleted)
       select $1, 'project', 'USR', true from generate_series(1, $2)`,
      [body.id, ANNOTATION_LIMITS.perProject],
    );
    const refused = await ask('POST', of(body.id), { content: 'One more' });
    expect([refused.status, refused.body.detail]).toEqual([
      400,
      expect.stringContaining('already has 10000'),
    ]);
  });

  test('a project floods the lists of no other one', async () => {
    const { body } = await ask('POST', '/api/projects/', { name: 'Flooding' });
    await api.pool.query(
      `insert into annotations (project_id, scope, creation_type, deleted)
       select $1, 'organization', 'USR', true from generate_series(1, $2)`,
      [body.id, ANNOTATION_LIMITS.shared],
    );
    const own = await create({ content: 'Own', scope: 'project' }, body.id);
    for (const refused of [
      await ask('POST', of(body.id), { content: 'One more', scope: 'organization' }),
      await ask('PATCH', of(body.id, `${own.id}/`), { scope: 'organization' }),
    ]) {
      expect([refused.status, refused.body.attr, refused.body.detail]).toEqual([
        ...[400, 'scope'],
        expect.stringContaining('already has 1000 annotations about the organization'),
      ]);
    }
    expect((await ask('PATCH', of(body.id, `${own.id}/`), { content: 'Still' })).status).toBe(200);
  });

  test('go with their project', async () => {
    const { body } = await ask('POST', '/api/projects/', { name: 'Doomed' });
    await create({ content: 'Doomed', scope: 'organization' }, body.id);
    expect((await ask('DELETE', `/api/projects/${body.id}/`)).status).toBe(204);
    const { rows } = await api.pool.query('select from annotations where project_id = $1', [body.id]);
    expect(rows).toEqual([]);
  });
});
