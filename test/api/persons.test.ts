import { beforeAll, describe, expect, test } from '@jest/globals';
import { closeHorizon, readHorizon } from '../../db/horizon.ts';
import { createPool } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { refusals } from '../support/refusals.ts';
import { insertPerson } from '../support/rows.ts';

const api = apiForFile();
let anna: Tenant;
const ADA = '01890af2-aaaa-7bbb-8ccc-00000000aaaa';
const BOB = '01890af2-aaaa-7bbb-8ccc-00000000bbbb';
const CAT = '01890af2-aaaa-7bbb-8ccc-00000000cccc';

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  await insertPerson(api.pool, anna.projectId, {
    id: ADA,
    distinct_ids: ['0190aaaa-1111-7222-8333-444444444444', 'ada'],
    properties: { email: 'Ada@Example.com', name: 'Ada Lovelace', nested: { list: [1, null] } },
    created_at: '2026-01-01T00:00:00.000001Z',
    is_identified: true,
  });
  await insertPerson(api.pool, anna.projectId, {
    id: BOB,
    distinct_ids: ['bob%1'],
    properties: { name: 'Ádám_B', email: '' },
    created_at: '2026-01-02T00:00:00Z',
  });
  await insertPerson(api.pool, anna.projectId, {
    id: CAT,
    distinct_ids: ['0190aaaa-1111-7222-8333-555555555555', 'Ada-2'],
    created_at: '2026-01-02T00:00:00Z',
  });
});

const url = (tenant: Tenant, rest = '') => `/api/projects/${tenant.projectId}/persons/${rest}`;
const list = async (query = '', tenant = anna) => {
  const answer = await api.request(tenant, 'GET', url(tenant, query));
  expect(answer.statusCode).toBe(200);
  return answer.json() as {
    count: number;
    next: string | null;
    previous: string | null;
    results: { id: string; name: string; distinct_ids: string[] }[];
  };
};
const ids = async (query: string) => (await list(query)).results.map((one) => one.id);

describe('a person', () => {
  const record = {
    type: 'person',
    id: ADA,
    uuid: ADA,
    name: 'Ada@Example.com',
    distinct_ids: ['0190aaaa-1111-7222-8333-444444444444', 'ada'],
    properties: { email: 'Ada@Example.com', name: 'Ada Lovelace', nested: { list: [1, null] } },
    created_at: '2026-01-01T00:00:00.000001Z',
    is_identified: true,
  };

  test('is listed and retrieved in the documented form', async () => {
    expect(await list('?distinct_id=ada')).toEqual({
      count: 1,
      next: null,
      previous: null,
      results: [record],
    });
    for (const id of [ADA, ADA.toUpperCase()]) {
      expect((await api.request(anna, 'GET', url(anna, `${id}/`))).json()).toEqual(record);
    }
  });

  test('is called by the first thing that names people, else by a distinct id that somebody chose', async () => {
    expect((await list()).results.map((one) => one.name)).toEqual(['Ada-2', 'Ádám_B', 'Ada@Example.com']);
  });

  test('with many distinct ids shows ten in a list and a thousand alone, in their order', async () => {
    const mia = await api.createTenant('Mia');
    const many = Array.from({ length: 1_500 }, (_, n) => `id-${String(n).padStart(4, '0')}`);
    const id = uuidv7();
    await insertPerson(api.pool, mia.projectId, { id, distinct_ids: many.toReversed() });
    expect((await list('', mia)).results[0]?.distinct_ids).toEqual(many.slice(0, 10));
    const alone = (await api.request(mia, 'GET', url(mia, `${id}/`))).json();
    expect(alone.distinct_ids).toEqual(many.slice(0, 1_000));
    expect((await list('?distinct_id=id-1499', mia)).count).toBe(1);
  });

  test('that is unknown or no uuid is not found', async () => {
    for (const method of ['GET', 'DELETE']) {
      for (const id of [uuidv7(), 'ada', '1', '%00']) {
        const answer = await api.request(anna, method, url(anna, `${id}/`));
        expect([answer.statusCode, answer.json()]).toEqual([404, refusals.notFound()]);
      }
    }
  });
});

describe('the list', () => {
  test.each([
    ['', [CAT, BOB, ADA]],
    ['?limit=1', [CAT]],
    ['?limit=1&offset=1', [BOB]],
    ['?distinct_id=bob%251', [BOB]],
    ['?distinct_id=bob', []],
    ['?distinct_id=', []],
    ['?email=ada@example.COM', [ADA]],
    ['?email=ada@example', []],
    ['?email=', [BOB]],
    ['?search=ad', [ADA]],
    ['?search=Ad', [CAT, ADA]],
    ['?search=ada%20l', [ADA]],
    ['?search=lovelace', []],
    ['?search=%C3%81D%C3%81M', [BOB]],
    ['?search=bob%25', [BOB]],
    ['?search=%25', []],
    ['?search=b_b', []],
    ['?search=%5C', []],
    ['?search=', [CAT, BOB, ADA]],
    ['?search=Ad&email=ada@example.com', [ADA]],
    ['?search=Ad&distinct_id=Ada-2', [CAT]],
  ])('%s', async (query, expected) => {
    expect(await ids(query)).toEqual(expected);
  });

  test('a page of very large persons ends early, and the links lead to all of them', async () => {
    const emil = await api.createTenant('Emil');
    const text = 'x'.repeat(500_000);
    for (let index = 0; index < 40; index += 1) {
      await insertPerson(api.pool, emil.projectId, {
        id: uuidv7(),
        distinct_ids: [`d${index}`],
        properties: { text },
        created_at: '2026-01-01T00:00:00Z',
      });
    }
    const first = await list('?limit=1000', emil);
    expect([first.count, first.results.length]).toEqual([40, 33]);
    const second = await list(new URL(first.next as string).search, emil);
    expect([second.results.length, second.next]).toEqual([7, null]);
    expect(new Set([...first.results, ...second.results].map(({ id }) => id)).size).toBe(40);
  });

  test('has links that keep the filters and hold no key', async () => {
    const page = await list(`?search=Ad&limit=1&personal_api_key=${anna.key}`);
    expect(page).toMatchObject({
      count: 2,
      previous: null,
      next: `https://sluice.test${url(anna)}?limit=1&offset=1&search=Ad`,
    });
    expect(await ids('?search=Ad&limit=1&offset=1')).toEqual([ADA]);
  });

  test.each(['properties=[]', 'person_id=1', 'emial=x', 'format=csv'])('refuses ?%s', async (query) => {
    const answer = await api.request(anna, 'GET', url(anna, `?${query}`));
    expect([answer.statusCode, answer.json().attr]).toEqual([400, query.split('=')[0]]);
  });

  test('an email longer than an index holds is stored and found', async () => {
    const tenant = await api.createTenant('Long');
    const email = `${'é'.repeat(4_000)}@example.com`;
    const [id, other] = [uuidv7(), uuidv7()];
    await insertPerson(api.pool, tenant.projectId, { id, distinct_ids: ['a'], properties: { email } });
    await insertPerson(api.pool, tenant.projectId, {
      id: other,
      distinct_ids: ['b'],
      properties: { email: `${email}x`, name: email },
    });
    const found = await list(`?email=${encodeURIComponent(email.toUpperCase())}`, tenant);
    expect(found.results.map((one) => one.id)).toEqual([id]);
  });
});

describe('deleting', () => {
  let ben: Tenant;
  const state = async () => {
    const of = async (table: string, columns: string) =>
      (
        await api.pool.query(`select ${columns} from ${table} where project_id = $1 order by 1`, [
          ben.projectId,
        ])
      ).rows;
    return {
      persons: (await of('persons', 'id')).map((row) => row.id),
      mappings: (await of('person_distinct_ids', 'distinct_id')).map((row) => row.distinct_id),
      deleted: await of(
        'deleted_distinct_ids',
        'distinct_id, person_id, version, person_version, person_created_at, changed_at',
      ),
    };
  };
  const bulk = async (body: unknown) => {
    const answer = await api.request(ben, 'POST', url(ben, 'bulk_delete/'), body);
    return [answer.statusCode, answer.json()];
  };

  beforeAll(async () => {
    ben = await api.createTenant('Ben');
    for (const [id, distinctIds, version] of [
      [ADA, ['a1', 'a2'], 7],
      [BOB, ['b1'], 0],
      [CAT, ['c1'], 0],
    ] as const) {
      await insertPerson(api.pool, ben.projectId, { id, distinct_ids: [...distinctIds], version });
    }
    // A distinct id that was deleted before, and came again.
    await api.pool.query(
      `insert into deleted_distinct_ids values ($1, 'a2', $2, 5, 3, '2020-01-01', '2020-01-01')`,
      [ben.projectId, CAT],
    );
    await api.pool.query(
      `update person_distinct_ids set version = 6 where project_id = $1 and distinct_id = 'a2'`,
      [ben.projectId],
    );
  });

  test('leaves of a person what exports need to tell of it, and an entry that does not say who it was', async () => {
    const before = await closeHorizon(api.pool, 5_000);
    const answer = await api.request(ben, 'DELETE', url(ben, `${ADA.toUpperCase()}/`));
    expect([answer.statusCode, answer.body]).toEqual([204, '']);
    const { persons, mappings, deleted } = await state();
    expect([persons, mappings]).toEqual([
      [BOB, CAT],
      ['b1', 'c1'],
    ]);
    const row = { person_id: ADA, person_version: 8, person_created_at: '2026-01-02T03:04:05Z' };
    expect(deleted).toEqual([
      { ...row, distinct_id: 'a1', version: 1, changed_at: deleted[0].changed_at },
      { ...row, distinct_id: 'a2', version: 7, changed_at: deleted[0].changed_at },
    ]);
    expect(deleted[0].changed_at > (before as string)).toBe(true);
    expect((await closeHorizon(api.pool, 5_000))! > deleted[0].changed_at).toBe(true);
    const log = await api.request(ben, 'GET', `/api/projects/${ben.projectId}/activity_log/`);
    expect(log.json().results).toEqual([
      expect.objectContaining({
        scope: 'Person',
        item_id: ADA,
        activity: 'deleted',
        detail: { distinct_ids: 2 },
        organization_id: ben.organizationId,
      }),
    ]);
    expect((await api.request(ben, 'DELETE', url(ben, `${ADA}/`))).statusCode).toBe(404);
    expect((await api.request(ben, 'GET', url(ben, `${ADA}/`))).statusCode).toBe(404);
  });

  test('many at once, by either kind of id', async () => {
    expect(await bulk({ distinct_ids: ['c1', 'c1', 'nobody'] })).toEqual([200, { persons_deleted: 1 }]);
    expect((await state()).persons).toEqual([BOB]);
    expect(await bulk({ ids: [uuidv7(), BOB.toUpperCase(), BOB], delete_events: false })).toEqual([
      200,
      { persons_deleted: 1 },
    ]);
    expect(await bulk({ ids: [BOB] })).toEqual([200, { persons_deleted: 0 }]);
    const { persons, mappings, deleted } = await state();
    expect([persons, mappings, deleted.map((row) => row.distinct_id)]).toEqual([
      [],
      [],
      ['a1', 'a2', 'b1', 'c1'],
    ]);
  });

  test('a thousand at once', async () => {
    const tenant = await api.createTenant('Thousand');
    const all = Array.from({ length: 1_000 }, () => uuidv7());
    for (const id of all) await insertPerson(api.pool, tenant.projectId, { id, distinct_ids: [`of ${id}`] });
    const answer = await api.request(tenant, 'POST', url(tenant, 'bulk_delete/'), { ids: all });
    expect(answer.json()).toEqual({ persons_deleted: 1_000 });
    const log = await api.request(
      tenant,
      'GET',
      `/api/projects/${tenant.projectId}/activity_log/?limit=1000`,
    );
    expect(new Set(log.json().results.map((one: { item_id: string }) => one.item_id))).toEqual(new Set(all));
  });

  test.each([
    [{}, refusals.field(null, 'invalid_input', 'Give either `ids` or `distinct_ids`.')],
    [
      { ids: [], distinct_ids: [] },
      refusals.field(null, 'invalid_input', 'Give either `ids` or `distinct_ids`.'),
    ],
    [{ ids: ['ada'] }, refusals.field('ids__0', 'invalid_input', 'Must be a valid UUID.')],
    [
      { distinct_ids: Array(1_001).fill('x') },
      refusals.field('distinct_ids', 'max_length', 'Ensure this field has no more than 1000 elements.'),
    ],
    [
      { distinct_ids: ['x'], delete_events: true },
      refusals.field(
        'delete_events',
        'invalid_input',
        'Events cannot be deleted together with their persons.',
      ),
    ],
  ])('refuses %j', async (body, refusal) => {
    expect(await bulk(body)).toEqual([400, refusal]);
  });

  test('with delete_events in the query is refused, not half done', async () => {
    const answer = await api.request(anna, 'DELETE', url(anna, `${ADA}/?delete_events=true`));
    expect([answer.statusCode, answer.json().attr]).toEqual([400, 'delete_events']);
    expect(await ids('?distinct_id=ada')).toEqual([ADA]);
  });
});

describe('deleting while somebody else changes the person', () => {
  const writers = () => createPool({ url: api.config.DATABASE_URL as string, size: 1, name: 'writer' });
  /** Until a query of the API waits for the writer's locks. */
  const waiting = async () => {
    for (;;) {
      const { rows } = await api.pool.query(
        `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      if (rows.length > 0) return;
    }
  };

  test('a distinct id that comes to the person meanwhile is deleted with them', async () => {
    const tenant = await api.createTenant('Meanwhile');
    await insertPerson(api.pool, tenant.projectId, { id: ADA, distinct_ids: ['ada'] });
    const pool = writers();
    const client = await pool.connect();
    await client.query('begin');
    await client.query('select from persons where project_id = $1 and id = $2 for update', [
      tenant.projectId,
      ADA,
    ]);
    const answer = api.request(tenant, 'DELETE', url(tenant, `${ADA}/`));
    await waiting();
    await client.query(`insert into person_distinct_ids values ($1, 'new', $2, 0, now())`, [
      tenant.projectId,
      ADA,
    ]);
    await client.query('commit');
    client.release();
    await pool.end();
    expect((await answer).statusCode).toBe(204);
    const { rows } = await api.pool.query(
      `select (select count(*)::int from person_distinct_ids where project_id = $1) as left,
         array(select distinct_id from deleted_distinct_ids where project_id = $1 order by 1) as deleted`,
      [tenant.projectId],
    );
    expect(rows).toEqual([{ left: 0, deleted: ['ada', 'new'] }]);
  });

  test('a distinct id that goes to another person meanwhile leads to that one', async () => {
    const tenant = await api.createTenant('Merged');
    await insertPerson(api.pool, tenant.projectId, { id: ADA, distinct_ids: ['ada'] });
    await insertPerson(api.pool, tenant.projectId, { id: BOB, distinct_ids: ['bob'] });
    const pool = writers();
    const client = await pool.connect();
    await client.query('begin');
    await client.query('select from persons where project_id = $1 order by id for update', [
      tenant.projectId,
    ]);
    const answer = api.request(tenant, 'POST', url(tenant, 'bulk_delete/'), { distinct_ids: ['ada'] });
    await waiting();
    // Ada turns out to be Bob: her person is absorbed.
    await client.query('update person_distinct_ids set person_id = $2 where project_id = $1', [
      tenant.projectId,
      BOB,
    ]);
    await client.query('delete from persons where project_id = $1 and id = $2', [tenant.projectId, ADA]);
    await client.query('commit');
    client.release();
    await pool.end();
    expect((await answer).json()).toEqual({ persons_deleted: 1 });
    expect((await list('', tenant)).count).toBe(0);
  });

  test('the horizon is not closed over a deletion that is under way', async () => {
    const tenant = await api.createTenant('Horizon');
    await insertPerson(api.pool, tenant.projectId, { id: ADA, distinct_ids: ['ada'] });
    const pool = writers();
    const client = await pool.connect();
    await client.query('begin');
    await client.query('select from persons where project_id = $1 for update', [tenant.projectId]);
    const answer = api.request(tenant, 'DELETE', url(tenant, `${ADA}/`));
    await waiting();
    const closed = await readHorizon(api.pool);
    expect(await closeHorizon(api.pool, 50)).toBeUndefined();
    await client.query('commit');
    client.release();
    await pool.end();
    expect((await answer).statusCode).toBe(204);
    const { rows } = await api.pool.query(
      'select changed_at from deleted_distinct_ids where project_id = $1',
      [tenant.projectId],
    );
    expect(rows[0].changed_at > closed).toBe(true);
  });
});
