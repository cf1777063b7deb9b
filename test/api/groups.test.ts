import { beforeAll, describe, expect, test } from '@jest/globals';
import { uuidv7 } from '../../db/uuid.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { refusals } from '../support/refusals.ts';
import { insertGroup } from '../support/rows.ts';

const api = apiForFile();
let anna: Tenant;
const ACME = uuidv7();

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  for (const [id, index, key, properties] of [
    [uuidv7(), 2, 'acme', {}],
    [ACME, 0, 'acme', { name: 'Acme', seats: [1, 2] }],
    [uuidv7(), 0, 'Acme%', {}],
    [uuidv7(), 0, 'zeta', { name: 'GmbH', seats: 42, city: 'Berlin-Mitte' }],
  ] as const) {
    await insertGroup(api.pool, anna.projectId, { id, group_type_index: index, group_key: key, properties });
  }
});

const url = (rest = '', tenant = anna) => `/api/projects/${tenant.projectId}/${rest}`;
const record = {
  id: ACME,
  group_type_index: 0,
  group_type: 'company',
  group_key: 'acme',
  group_properties: { name: 'Acme', seats: [1, 2] },
  created_at: '2026-01-02T03:04:05Z',
  updated_at: '2026-02-03T04:05:06Z',
};

describe('groups', () => {
  test('are retrieved by id, and found by type and key, in the documented form', async () => {
    for (const path of [
      `groups/${ACME}/`,
      `groups/${ACME.toUpperCase()}`,
      'groups/find/?group_type_index=0&group_key=acme',
    ]) {
      const answer = await api.request(anna, 'GET', url(path));
      expect([answer.statusCode, answer.json()]).toEqual([200, record]);
    }
  });

  test.each([
    ['', ['0 Acme%', '0 acme', '0 zeta', '2 acme']],
    ['?limit=2&offset=1', ['0 acme', '0 zeta']],
    ['?group_type_index=2', ['2 acme']],
    ['?group_type_index=4', []],
    ['?search=ac', ['0 Acme%', '0 acme', '2 acme']],
    ['?search=cme', []],
    ['?search=GMBH', ['0 zeta']],
    ['?search=zeta%20gmbh', []],
    ['?search=berlin-m', ['0 zeta']],
    ['?search=mitte', ['0 zeta']],
    ['?search=berlin', ['0 zeta']],
    ['?search=42', []],
    ['?group_key=CM', ['0 Acme%', '0 acme', '2 acme']],
    ['?group_key=E%25', ['0 Acme%']],
    ['?search=Acme%25', ['0 Acme%']],
    ['?search=%25', []],
    ['?search=ac&group_type_index=0', ['0 Acme%', '0 acme']],
  ])('listed by %s', async (query, expected) => {
    const answer = (await api.request(anna, 'GET', url(`groups/${query}`))).json();
    expect(
      answer.results.map(
        (one: { group_type_index: number; group_key: string }) => `${one.group_type_index} ${one.group_key}`,
      ),
    ).toEqual(expected);
  });

  test.each([
    ['groups/?group_type_index=5', 'group_type_index', 'Must be a whole number from 0 to 4.'],
    ['groups/?group_type_index=x', 'group_type_index', 'Must be a whole number from 0 to 4.'],
    ['groups/?cursor=x', 'cursor', 'There is no field or parameter "cursor" here.'],
    ['groups/find/?group_type_index=0', 'group_key', 'This field is required.'],
    ['groups/find/?group_key=acme', 'group_type_index', 'This field is required.'],
  ])('%s is refused', async (path, attr, detail) => {
    const answer = await api.request(anna, 'GET', url(path));
    expect([answer.statusCode, answer.json()]).toMatchObject([400, { attr, detail }]);
  });

  test('that are unknown are not found', async () => {
    for (const path of [
      `groups/${uuidv7()}/`,
      'groups/acme/',
      'groups/find/?group_type_index=1&group_key=acme',
      'groups/find/?group_type_index=0&group_key=ACME',
    ]) {
      const answer = await api.request(anna, 'GET', url(path));
      expect([answer.statusCode, answer.json()]).toEqual([404, refusals.notFound()]);
    }
  });

  test('are created once, and get properties, by events', async () => {
    const body = { group_type_index: 0, group_key: 'new', group_properties: { name: 'New', seats: 1 } };
    const made = await api.request(anna, 'POST', url('groups/'), body);
    expect([made.statusCode, made.json()]).toEqual([
      201,
      {
        ...record,
        ...body,
        id: expect.any(String),
        created_at: expect.any(String),
        updated_at: expect.any(String),
      },
    ]);
    const again = await api.request(anna, 'POST', url('groups/'), body);
    expect([again.statusCode, again.json()]).toEqual([
      400,
      refusals.field('detail', 'invalid_input', 'A group with this key already exists'),
    ]);
    const set = (query: string, change: object) =>
      api.request(anna, 'POST', url(`groups/update_property/?${query}`), change);
    const changed = await set('group_type_index=0&group_key=new', { key: 'seats', value: 2 });
    expect([changed.statusCode, changed.json().group_properties]).toEqual([200, { name: 'New', seats: 2 }]);
    const { rows } = await api.pool.query(
      "select event, distinct_id, properties from events where project_id = $1 and event = '$groupidentify' order by inserted_at",
      [anna.projectId],
    );
    expect(rows.map((one) => one.properties.$group_set)).toEqual([{ name: 'New', seats: 1 }, { seats: 2 }]);
    const { rows: persons } = await api.pool.query('select from persons where project_id = $1', [
      anna.projectId,
    ]);
    expect(persons).toEqual([]);
    for (const [query, change, status, attr] of [
      ['group_type_index=0&group_key=new', { value: 1 }, 400, 'key'],
      ['group_type_index=0&group_key=new', { key: 'a' }, 400, 'value'],
      ['group_type_index=0&group_key=new', { key: 'a', value: null }, 400, 'value'],
      ['group_type_index=0', { key: 'a', value: 1 }, 400, 'group_key'],
      ['group_type_index=0&group_key=nobody', { key: 'a', value: 1 }, 404, null],
      ['group_type_index=1&group_key=new', { key: 'a', value: 1 }, 404, null],
    ] as const) {
      const refused = await set(query, change);
      expect([query, refused.statusCode, refused.json().attr]).toEqual([query, status, attr]);
    }
    const unknown = await api.request(anna, 'POST', url('groups/'), { ...body, group_type_index: 3 });
    expect(unknown.statusCode).toBe(404);
    const log = await api.request(anna, 'GET', url('activity_log/?scope=Group'));
    expect(log.json().results.map((one: { activity: string }) => one.activity)).toEqual([
      'updated',
      'created',
    ]);
    const large = await set('group_type_index=0&group_key=new', { key: 'big', value: 'x'.repeat(600_000) });
    expect([large.statusCode, large.json().detail]).toEqual([
      ...[400, 'The change was not made: group properties too large.'],
    ]);
    const { id } = made.json();
    await api.request(anna, 'DELETE', url(`groups/${id}/`));
  });

  test('are deleted once, and it is written down', async () => {
    const ben = await api.createTenant('Ben');
    const id = uuidv7();
    await insertGroup(api.pool, ben.projectId, { id, group_type_index: 0, group_key: 'gone' });
    const remove = (one: string) => api.request(ben, 'DELETE', url(`groups/${one}/`, ben));
    expect((await remove('gone')).statusCode).toBe(404);
    expect((await remove(id.toUpperCase())).statusCode).toBe(204);
    expect((await remove(id)).statusCode).toBe(404);
    const log = await api.request(ben, 'GET', url('activity_log/', ben));
    expect(log.json().results).toEqual([
      expect.objectContaining({ scope: 'Group', item_id: id, activity: 'deleted', detail: {} }),
    ]);
  });
});

describe('types of groups', () => {
  const types = [
    { group_type: 'company', group_type_index: 0, name_singular: null, name_plural: null },
    { group_type: 'site', group_type_index: 2, name_singular: null, name_plural: null },
  ];
  const patch = (body: unknown) => api.request(anna, 'PATCH', url('groups_types/update_metadata/'), body);

  test('are a bare list, and can be named', async () => {
    expect((await api.request(anna, 'GET', url('groups_types/'))).json()).toEqual(types);
    const named = await patch([
      { group_type_index: 0, group_type: 'renamed', name_singular: ' Company ', name_plural: 'Companies' },
      { group_type_index: 2, name_singular: '' },
    ]);
    expect([named.statusCode, named.json()]).toEqual([
      200,
      [
        { ...types[0], name_singular: 'Company', name_plural: 'Companies' },
        { ...types[1], name_singular: '' },
      ],
    ]);
    const again = await patch([{ group_type_index: 0, name_singular: null }]);
    expect(again.json()[0]).toEqual({ ...types[0], name_plural: 'Companies' });
    expect((await api.request(anna, 'GET', url('groups_types/'))).json()).toEqual(again.json());
  });

  test('that are unknown, or no list, are refused and nothing is changed', async () => {
    const before = (await api.request(anna, 'GET', url('groups_types/'))).json();
    for (const [body, refusal] of [
      [
        [
          { group_type_index: 0, name_plural: 'x' },
          { group_type_index: 1, name_plural: 'x' },
        ],
        refusals.field('1__group_type_index', 'does_not_exist', 'There is no group type with the index 1.'),
      ],
      [
        [{ group_type_index: 5 }],
        refusals.field('0__group_type_index', 'max_value', 'Ensure this value is less than or equal to 4.'),
      ],
      [
        [{ group_type_index: 0, name_plural: 'x'.repeat(401) }],
        refusals.field('0__name_plural', 'max_length', 'Ensure this field has no more than 400 characters.'),
      ],
      [[], refusals.field(null, 'empty', 'This list may not be empty.')],
    ] as const) {
      const answer = await patch(body);
      expect([answer.statusCode, answer.json()]).toEqual([400, refusal]);
    }
    expect((await patch({ group_type_index: 0 })).statusCode).toBe(400);
    expect((await api.request(anna, 'GET', url('groups_types/'))).json()).toEqual(before);
  });
});

test('person and group scopes are asked for', async () => {
  const reader = await api.createTenant('Reader', { scopes: ['group:read', 'person:read'] });
  const id = uuidv7();
  for (const [method, path, scope] of [
    ['DELETE', `groups/${id}/`, 'group:write'],
    ['PATCH', 'groups_types/update_metadata/', 'group:write'],
    ['DELETE', `persons/${id}/`, 'person:write'],
    ['POST', 'persons/bulk_delete/', 'person:write'],
  ] as const) {
    const answer = await api.request(reader, method, url(path, reader), method === 'DELETE' ? undefined : []);
    expect([answer.statusCode, answer.json()]).toEqual([403, refusals.scope(scope)]);
  }
  for (const path of ['groups/', 'groups_types/', 'persons/']) {
    expect((await api.request(reader, 'GET', url(path, reader))).statusCode).toBe(200);
  }
});
