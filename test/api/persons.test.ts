import { beforeAll, describe, expect, test } from '@jest/globals';
import { closeHorizon, readHorizon } from '../../db/horizon.ts';
import { readPersonWords } from '../../db/person-words.ts';
import { createPool } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { carryAll } from '../capture/support.ts';
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
const readWords = (atOnce?: number) =>
  readPersonWords(api.pool, { signal: new AbortController().signal, beat: () => {} }, { atOnce });
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
    copied_through: null,
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

  test('tells how far its copied properties are', async () => {
    const before = Date.now();
    await carryAll(api.pool);
    const { rows } = await api.pool.query('select through from person_carrying');
    const carried = (await api.request(anna, 'GET', url(anna, `${ADA}/`))).json();
    expect(carried).toEqual({ ...record, copied_through: expect.any(String) });
    expect(Date.parse(carried.copied_through)).toBe(Date.parse(rows[0].through));
    expect(Date.parse(carried.copied_through)).toBeGreaterThanOrEqual(before);
    await api.pool.query('delete from person_carrying');
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
        const advice = `The ID provided does not look like a personID. If you are using a distinctId, please use /persons?distinct_id=${id} instead.`;
        const expected =
          method === 'GET' && id.length < 36
            ? { ...refusals.notFound(), detail: advice }
            : refusals.notFound();
        expect([answer.statusCode, answer.json()]).toEqual([404, expected]);
      }
    }
  });
});

describe('the list', () => {
  const searches: [query: string, found: string[]][] = [
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
    ['?search=lovelace', [ADA]],
    ['?search=LOVE', [ADA]],
    ['?search=velace', []],
    ['?search=lovelace%20ada', []],
    ['?search=example.com', [ADA]],
    ['?search=a@ex', []],
    ['?search=ada@ex', [ADA]],
    ['?search=%40ex', [ADA]],
    ['?search=example', [ADA]],
    [`?search=${ADA}`, [ADA]],
    [`?search=${ADA.toUpperCase()}`, [ADA]],
    ['?search=0190aaaa-1111-7222-8333-444444444444', [ADA]],
    ['?search=01890af2-aaaa-7bbb-8ccc-00000000ffff', []],
    ['?search=b&email=', [BOB]],
    ['?search=%C3%81D%C3%81M', [BOB]],
    ['?search=bob%25', [BOB]],
    ['?search=%25', []],
    ['?search=b_b', []],
    ['?search=%5C', []],
    ['?search=', [CAT, BOB, ADA]],
    ['?search=Ad&email=ada@example.com', [ADA]],
    ['?search=Ad&distinct_id=Ada-2', [CAT]],
  ];
  test.each(searches)('%s', async (query, expected) => {
    expect(await ids(query)).toEqual(expected);
  });

  describe('once their words are read', () => {
    beforeAll(async () => {
      const { rows } = await api.pool.query('select count(*)::int as count from persons');
      expect(await readWords(2)).toBe(rows[0].count);
      expect(await readWords()).toBe(0);
    });
    test.each(searches)('%s', async (query, expected) => {
      expect(await ids(query)).toEqual(expected);
    });

    test('a project with many changes keeps no other waiting', async () => {
      const [many, few] = [await api.createTenant('Many'), await api.createTenant('Few')];
      for (const [{ projectId }, count] of [
        [many, 5],
        [few, 1],
      ] as const) {
        for (let n = 0; n < count; n += 1)
          await insertPerson(api.pool, projectId, {
            id: uuidv7(),
            distinct_ids: [`p${n}`],
            properties: { name: `Name ${n}` },
          });
      }
      const known = async () => {
        const { rows } = await api.pool.query(
          'select project_id, count(*)::int as count from person_words where project_id = any($1) group by 1 order by 1',
          [[many.projectId, few.projectId]],
        );
        return rows.map((row) => row.count);
      };
      const work = { signal: new AbortController().signal, beat: () => {} };
      expect(await readPersonWords(api.pool, work, { atOnce: 2, longest: 0 })).toBe(3);
      expect(await known()).toEqual([2, 1]);
      expect(await readPersonWords(api.pool, work, { atOnce: 2 })).toBe(3);
      expect(await known()).toEqual([5, 1]);
    });

    test('those who changed since then are found by what they are called now', async () => {
      const nina = await api.createTenant('Nina');
      const id = uuidv7();
      await insertPerson(api.pool, nina.projectId, {
        id,
        distinct_ids: ['n'],
        properties: { name: 'Old Name' },
      });
      const found = async (search: string) => (await list(`?search=${search}`, nina)).count;
      const rename = (properties: object) =>
        api.pool.query(
          'update persons set properties = $3, changed_at = clock_timestamp() where project_id = $1 and id = $2',
          [nina.projectId, id, properties],
        );
      await readWords();
      await rename({ name: 'New Name', username: 'nn' });
      expect([await found('new'), await found('name'), await found('nn')]).toEqual([1, 1, 1]);
      await readWords();
      expect([await found('new'), await found('old'), await found('nn')]).toEqual([1, 0, 1]);
      await rename({ other: 'New' });
      await readWords();
      expect(await found('new')).toBe(0);
      await rename({ name: 'New' });
      await readWords();
      await api.request(nina, 'DELETE', url(nina, `${id}/`));
      const { rows } = await api.pool.query('select from person_words where project_id = $1', [
        nina.projectId,
      ]);
      expect(rows).toEqual([]);
    });

    test('the words of another project are not read', async () => {
      const olga = await api.createTenant('Olga');
      expect((await list('?search=lovelace', olga)).count).toBe(0);
    });
  });

  test.each([
    ['[{"key":"name","value":"Ada Lovelace","type":"person"}]', [ADA]],
    ['[{"key":"email","operator":"is_set","value":"is_set","type":"person"}]', [BOB, ADA]],
    ['[{"key":"email","operator":"icontains","value":"a@ex","type":"person"}]', [ADA]],
    ['[{"key":"name","value":"Ada Lovelace"}]', [ADA]],
    ['[{"key":"name","value":"nobody","type":"person"}]', []],
    [
      '{"type":"OR","values":[{"key":"name","value":"Ada Lovelace","type":"person"},{"key":"name","value":"Ádám_B","type":"person"}]}',
      [BOB, ADA],
    ],
    ['[]', [CAT, BOB, ADA]],
  ])('are filtered by properties %s', async (properties, expected) => {
    const filter = `?properties=${encodeURIComponent(properties)}`;
    const page = await list(filter);
    expect([page.results.map((one) => one.id), page.count]).toEqual([expected, expected.length]);
    expect(await ids(`${filter}&distinct_id=ada`)).toEqual(expected.filter((id) => id === ADA));
    expect(await ids(`${filter}&search=ada`)).toEqual(expected.filter((id) => id !== BOB));
    expect(await ids(`${filter}&distinct_id=nobody`)).toEqual([]);
  });

  test('those that are filtered have pages, and are counted when asked', async () => {
    const filter = `?properties=${encodeURIComponent('[{"key":"email","operator":"is_set","type":"person"}]')}`;
    const first = await list(`${filter}&limit=1`);
    expect([first.results[0]?.id, first.count]).toEqual([BOB, null]);
    const second = await list(new URL(first.next as string).search);
    expect([second.results[0]?.id, second.next, second.previous !== null]).toEqual([ADA, null, true]);
    expect((await list(`${filter}&limit=1&include_total=true`)).count).toBe(2);
  });

  test.each([
    ['properties=nonsense', 'properties'],
    [
      `properties=${encodeURIComponent('[{"key":"a","value":"(","operator":"regex","type":"person"}]')}`,
      'properties',
    ],
    [`properties=${encodeURIComponent('[{"key":"1 = (","type":"hogql"}]')}`, 'properties'],
  ])('refuses ?%s', async (query, attr) => {
    const answer = await api.request(anna, 'GET', url(anna, `?${query}`));
    expect([answer.statusCode, answer.json().attr]).toEqual([400, expect.stringContaining(attr)]);
  });

  test('come as CSV', async () => {
    const csv = await api.request(anna, 'GET', url(anna, '?format=csv&search=ada'));
    expect([csv.statusCode, csv.headers['content-type']]).toEqual([200, 'text/csv; charset=utf-8']);
    const [head, ...lines] = csv.body.trimEnd().split('\r\n');
    expect(head).toBe(
      'created_at,distinct_ids.0,distinct_ids.1,id,is_identified,name,properties.email,properties.name,properties.nested.list.0,type,uuid',
    );
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('Ada Lovelace');
    const named = `/api/projects/${anna.projectId}/persons.csv?search=ada`;
    expect((await api.request(anna, 'GET', named)).body).toBe(csv.body);
    const paged = await api.request(anna, 'GET', url(anna, '?limit=1'), undefined, { accept: 'text/csv' });
    expect(paged.headers.link).toBe(`<https://sluice.test${url(anna)}?limit=1&offset=1>; rel="next"`);
    const odd = await api.createTenant('Odd');
    await insertPerson(api.pool, odd.projectId, {
      id: uuidv7(),
      distinct_ids: ['o'],
      properties: { name: '=1+1' },
    });
    const safe = await api.request(odd, 'GET', url(odd, '?format=csv&escape_formulas=true'));
    expect(safe.body).toContain("'=1+1");
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

  test.each(['person_id=1', 'emial=x', 'format=xml'])('refuses ?%s', async (query) => {
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

describe('values', () => {
  test('of a property are told by how many have them', async () => {
    const vera = await api.createTenant('Vera');
    const have: object[] = [
      { plan: 'gold' },
      { plan: 'gold' },
      { plan: 'Silver' },
      { plan: ['gold', 7] },
      { x: 1 },
    ];
    for (const [index, properties] of have.entries())
      await insertPerson(api.pool, vera.projectId, { id: uuidv7(), distinct_ids: [`v${index}`], properties });
    const values = async (query: string, who = vera) => {
      const answer = await api.request(who, 'GET', url(who, `values/${query}`));
      expect([answer.statusCode, answer.headers['cache-control']]).toEqual([200, 'max-age=10']);
      expect(answer.json().refreshing).toBe(false);
      return answer.json().results;
    };
    expect(await values('?key=plan')).toEqual([
      ...[
        { name: 'gold', count: 3 },
        { name: '7', count: 1 },
        { name: 'Silver', count: 1 },
      ],
    ]);
    expect(await values('?key=plan&value=SIL&refresh=force_blocking')).toEqual([
      { name: 'Silver', count: 1 },
    ]);
    expect(await values('?key=plan&value=%25')).toEqual([]);
    expect(await values('?key=nothing')).toEqual([]);
    expect(await values('')).toEqual([]);
    expect(await values('?key=plan', anna)).toEqual([]);
  });
});

describe('many at once', () => {
  const batch = async (path: string, body: object) => {
    const answer = await api.request(anna, 'POST', url(anna, `${path}/`), body);
    return [answer.statusCode, answer.json()];
  };

  test('are found by distinct ids and by uuids; those of another project are not', async () => {
    const other = await api.createTenant('Other');
    const strange = uuidv7();
    await insertPerson(api.pool, other.projectId, { id: strange, distinct_ids: ['strange'] });
    const [status, found] = await batch('batch_by_distinct_ids', {
      distinct_ids: ['ada', 'nobody', 'bob%1', 'strange', '0190aaaa-1111-7222-8333-444444444444'],
    });
    expect(status).toBe(200);
    expect(Object.keys(found.results).sort()).toEqual([
      '0190aaaa-1111-7222-8333-444444444444',
      'ada',
      'bob%1',
    ]);
    expect(found.results.ada).toEqual((await list('?distinct_id=ada')).results[0]);
    expect(found.results['0190aaaa-1111-7222-8333-444444444444']).toEqual(found.results.ada);
    const [, byId] = await batch('batch_by_uuids', { uuids: [ADA.toUpperCase(), strange, uuidv7(), CAT] });
    expect(Object.keys(byId.results).sort()).toEqual([ADA, CAT].sort());
  });

  test.each([{}, { distinct_ids: [] }, { distinct_ids: 'ada' }, { distinct_ids: null }])(
    '%j finds nobody',
    async (body) => {
      expect(await batch('batch_by_distinct_ids', body)).toEqual([200, { results: {} }]);
    },
  );

  test('the first 200 are looked up', async () => {
    const many = [...Array.from({ length: 200 }, (_, n) => `none-${n}`), 'ada'];
    expect(await batch('batch_by_distinct_ids', { distinct_ids: many })).toEqual([200, { results: {} }]);
    expect((await batch('batch_by_distinct_ids', { distinct_ids: many.slice(1) }))[1].results).toHaveProperty(
      'ada',
    );
  });

  test('what is no uuid is refused', async () => {
    const refusal = refusals.field(null, 'invalid_input', 'One or more UUIDs are invalid.');
    expect(await batch('batch_by_uuids', { uuids: [ADA, 'x'] })).toEqual([400, refusal]);
    expect(await batch('batch_by_uuids', { uuids: [7] })).toEqual([400, refusal]);
  });
});

describe('changing', () => {
  let dora: Tenant;
  const DORA = '01890af2-aaaa-7bbb-8ccc-00000000dddd';
  const send = async (method: string, rest: string, body: object, who = dora) => {
    const answer = await api.request(who, method, url(who, rest), body);
    return [answer.statusCode, answer.body === '' ? null : answer.json()];
  };
  const properties = async () => (await api.request(dora, 'GET', url(dora, `${DORA}/`))).json().properties;
  beforeAll(async () => {
    dora = await api.createTenant('Dora');
    await insertPerson(api.pool, dora.projectId, {
      id: DORA,
      distinct_ids: ['dora'],
      properties: { a: 1, b: 2 },
    });
  });

  test('sets and removes properties by events, and the log has their names only', async () => {
    expect(await send('POST', `${DORA}/update_property/`, { key: 'a', value: { deep: ['secret'] } })).toEqual(
      [202, null],
    );
    expect(await send('POST', `${DORA}/update_property/`, { key: 'c', value: null })).toEqual([202, null]);
    expect(await send('POST', `${DORA}/delete_property/`, { $unset: 'b' })).toEqual([201, { success: true }]);
    expect(await send('PATCH', `${DORA}/`, { properties: { d: 'x', name: 'Dora' } })).toEqual([202, null]);
    expect(await properties()).toEqual({ a: { deep: ['secret'] }, c: null, d: 'x', name: 'Dora' });
    const { rows } = await api.pool.query(
      'select event, distinct_id, person_id, properties from events where project_id = $1 order by inserted_at',
      [dora.projectId],
    );
    expect(rows.map((one) => [one.event, one.distinct_id, one.person_id])).toEqual([
      ...[
        ['$set', 'dora', DORA],
        ['$set', 'dora', DORA],
      ],
      ...[
        ['$delete_person_property', 'dora', DORA],
        ['$set', 'dora', DORA],
      ],
    ]);
    const log = await api.request(dora, 'GET', `/api/projects/${dora.projectId}/activity_log/?scope=Person`);
    expect(log.json().results.map((one: { detail: object }) => one.detail)).toEqual([
      ...[{ properties: ['d', 'name'] }, { properties: ['b'] }, { properties: ['c'] }, { properties: ['a'] }],
    ]);
    expect(log.body).not.toContain('secret');
    const own = (await api.request(dora, 'GET', url(dora, `${DORA.toUpperCase()}/activity/`))).json();
    expect(own).toMatchObject({
      count: 4,
      results: log.json().results.map(({ id }: { id: string }) => ({ id })),
    });
    expect((await api.request(anna, 'GET', url(anna, `${DORA}/activity/`))).statusCode).toBe(404);
  });

  test.each([
    ['POST', 'update_property/', { key: 'a' }, 'value', 'required'],
    ['POST', 'update_property/', { value: 1 }, 'key', 'required'],
    ['POST', 'update_property/', { key: null, value: 1 }, 'key', 'null'],
    ['POST', 'delete_property/', {}, '$unset', 'required'],
    ['PATCH', '', {}, 'properties', 'required'],
  ])('%s …/%s %j is refused', async (method, path, body, attr, code) => {
    const [status, answer] = await send(method, `${DORA}/${path}`, body);
    expect([status, answer.attr, answer.code]).toEqual([400, attr, code]);
  });

  test('what is too large is refused, and changes nothing', async () => {
    const before = await properties();
    const [status, answer] = await send('POST', `${DORA}/update_property/`, {
      key: 'big',
      value: 'x'.repeat(600_000),
    });
    expect([status, answer.detail]).toEqual([400, 'The change was not made: person properties too large.']);
    expect(await properties()).toEqual(before);
  });

  test('persons of others, and nobody, are not found, whatever the body says', async () => {
    for (const [method, path] of [
      ['POST', 'update_property/'],
      ['POST', 'delete_property/'],
      ['PATCH', ''],
    ] as const) {
      for (const id of [DORA, uuidv7(), 'x']) {
        expect(await send(method, `${id}/${path}`, {}, anna)).toEqual([404, refusals.notFound()]);
      }
    }
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
    const told = (await api.request(ben, 'GET', url(ben, 'activity/'))).json();
    expect(told.results).toMatchObject([{ item_id: ADA, activity: 'deleted', user: { id: ben.userId } }]);
    expect((await api.request(ben, 'DELETE', url(ben, `${ADA}/`))).statusCode).toBe(404);
    expect((await api.request(ben, 'GET', url(ben, `${ADA}/`))).statusCode).toBe(404);
  });

  test('many at once, by either kind of id', async () => {
    const deleted = (count: number) => [
      202,
      {
        ...{ persons_found: count, persons_deleted: count, deletion_errors: [] },
        ...{ events_queued_for_deletion: false, recordings_queued_for_deletion: false },
      },
    ];
    expect(await bulk({ distinct_ids: ['c1', 'c1', 'nobody'] })).toEqual(deleted(1));
    expect((await state()).persons).toEqual([BOB]);
    const many = { ids: [uuidv7(), BOB.toUpperCase(), BOB], distinct_ids: [], delete_events: false };
    expect(await bulk({ ...many, delete_recordings: true })).toEqual(deleted(1));
    expect(await bulk({ ids: [BOB] })).toEqual(deleted(0));
    const now = await state();
    expect([now.persons, now.mappings, now.deleted.map((row) => row.distinct_id)]).toEqual([
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
    expect(answer.json()).toMatchObject({ persons_deleted: 1_000 });
    const log = await api.request(
      tenant,
      'GET',
      `/api/projects/${tenant.projectId}/activity_log/?limit=1000`,
    );
    expect(new Set(log.json().results.map((one: { item_id: string }) => one.item_id))).toEqual(new Set(all));
  });

  test.each([
    [{}, refusals.field(null, 'invalid_input', 'You need to specify either distinct_ids or ids')],
    [
      { ids: [], distinct_ids: null },
      refusals.field(null, 'invalid_input', 'You need to specify either distinct_ids or ids'),
    ],
    [
      { ids: [ADA], distinct_ids: ['x'] },
      refusals.field(null, 'invalid_input', 'You must provide either distinct_ids or ids, not both'),
    ],
    [
      { ids: [ADA], keep_person: true },
      refusals.field(
        'keep_person',
        'invalid_input',
        'Events cannot be deleted without their persons, so nothing is left to do for a person that is kept.',
      ),
    ],
    [{ ids: ['ada'] }, refusals.field('ids__0', 'invalid_input', 'Must be a valid UUID.')],
    [
      { distinct_ids: Array(1_001).fill('x') },
      refusals.field('distinct_ids', 'invalid_input', 'You can only pass 1000 distinct_ids in one call'),
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
    expect((await answer).json()).toMatchObject({ persons_deleted: 1 });
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
