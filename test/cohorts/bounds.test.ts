// What the cohorts of a project may be together, and what they say of each other.
import { expect, test } from '@jest/globals';
import type { App } from '../../api/dependencies.ts';
import { lockCohorts } from '../../cohorts/rows/cohorts.ts';
import { readCohortDefinitions } from '../../cohorts/rows/definitions.ts';
import { transaction } from '../../db/pool.ts';
import { createDefinitions } from '../../flags/cache/definitions.ts';
import { readDefinitions } from '../../flags/rows/definitions.ts';
import { apiForFile, type Tenant, tenantsForFile } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { queriesOf } from '../support/query-log.ts';

const api = apiForFile();
const { anna } = tenantsForFile(api, 'anna');

const email = { key: 'email', type: 'person', operator: 'exact', value: 'a' };
const inCohort = (value: number | string) => ({ type: 'cohort', key: 'id', value });
const of = (...values: unknown[]) => ({ properties: { type: 'OR', values: [{ type: 'AND', values }] } });
const long = (bytes: number) => of({ ...email, value: 'x'.repeat(bytes) });

async function ask(
  method: 'GET' | 'POST' | 'PATCH',
  rest: string,
  payload?: object,
  { app = api.app, tenant = anna }: { app?: App; tenant?: Tenant } = {},
) {
  const answer = await app.inject({
    ...{ method, url: `/api/projects/${tenant.projectId}/cohorts/${rest}` },
    ...{ headers: { authorization: `Bearer ${tenant.key}` }, ...(payload && { payload }) },
  });
  return { status: answer.statusCode, body: answer.json() };
}
const create = async (filters: object, name = 'C', tenant = anna): Promise<number> =>
  (await ask('POST', '', { name, filters }, { tenant })).body.id;

test('the filters of all cohorts of a project have a bounded size', async () => {
  const tenant = await api.createTenant('Carl');
  const config = { ...api.config, SLUICE_COHORT_BYTES_PER_PROJECT: 2_000 };
  const app = await api.rebuild({ config });
  const done = (method: 'POST' | 'PATCH', rest: string, body: object) =>
    ask(method, rest, body, { app, tenant });
  try {
    const one = (await done('POST', '', { name: 'one', filters: long(1_400) })).body.id;
    const large = await done('POST', '', { name: 'two', filters: long(700) });
    expect([large.status, large.body.code, large.body.detail]).toEqual([
      400,
      'limit',
      expect.stringMatching(/^The filters of all cohorts .* would have \d+ bytes; 2000 are allowed/),
    ]);
    const two = (await done('POST', '', { name: 'two', filters: long(100) })).body.id;
    expect((await done('PATCH', `${two}/`, { filters: long(700) })).body.code).toBe('limit');
    // What is deleted makes room until it comes back. What does not grow can be changed.
    expect((await done('PATCH', `${one}/`, { deleted: true })).status).toBe(200);
    expect((await done('PATCH', `${two}/`, { filters: long(700) })).status).toBe(200);
    expect((await done('PATCH', `${one}/`, { deleted: false })).body.code).toBe('limit');
    await api.pool.query('update cohorts set filters = $2 where id = $1', [two, long(3_000)]);
    expect((await done('PATCH', `${two}/`, { name: 'smaller', filters: long(2_900) })).status).toBe(200);
  } finally {
    await app.close();
  }
});

test('a cohort knows which cohorts it names, however they are nested and spelled', async () => {
  const [a, b, c] = [await create(of(email)), await create(of(email)), await create(of(email))];
  const nested = {
    properties: {
      type: 'AND',
      values: [
        { type: 'OR', values: [inCohort(a), { type: 'AND', values: [{ ...inCohort(String(b)) }] }] },
        { ...inCohort(c), type: 'static-cohort' },
        { ...email, value: [`{"type": "cohort", "value": ${anna.projectId}}`] },
        inCohort(a),
      ],
    },
  };
  const id = await create(nested, 'Nested');
  const asks = async () =>
    (await api.pool.query('select asks from cohorts where id = $1', [id])).rows[0].asks as number[];
  expect((await asks()).toSorted((one, other) => one - other)).toEqual([a, b, c]);
  for (const used of [a, b, c]) {
    expect((await ask('GET', `${used}/used_by/`)).body.cohorts).toEqual([{ id, name: 'Nested' }]);
    expect((await ask('PATCH', `${used}/`, { deleted: true })).body.detail).toMatch(/other cohorts use it/);
  }
  await ask('PATCH', `${id}/`, { filters: of(inCohort(b)) });
  expect(await asks()).toEqual([b]);
  expect((await ask('PATCH', `${a}/`, { deleted: true })).status).toBe(200);
  expect((await ask('PATCH', `${id}/`, { filters: of(inCohort(a)) })).body.detail).toMatch(
    `there is no cohort ${a}`,
  );
});

test('a change of a cohort, a deletion and a list read the filters of no other', async () => {
  const named = await create(of(email));
  const asking = await create(of(inCohort(named)));
  for (const work of [
    () => ask('POST', '', { name: 'D', filters: of(inCohort(asking)) }),
    () => ask('PATCH', `${named}/`, { filters: of({ ...email, value: 'b' }) }),
    () => ask('PATCH', `${named}/`, { deleted: true }),
    () => ask('GET', `${named}/used_by/`),
  ]) {
    const { queries } = await queriesOf(work);
    const reading = queries.filter((text) => /\bfilters\b/.test(text) && /from cohorts/.test(text));
    // The cohort itself is found by its id.
    expect(reading.filter((text) => !/c\.id = \$2/.test(text))).toEqual([]);
  }
});

test('a circle is seen that somebody in another process closes meanwhile', async () => {
  const [a, b] = [await create(of(email)), await create(of(email))];
  const release = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const holder = transaction(api.pool, async (client) => {
    await lockCohorts(client, anna.projectId);
    await client.query('update cohorts set filters = $2, version = version + 1 where id = $1', [
      b,
      of(inCohort(a)),
    ]);
    locked.resolve();
    await release.promise;
  });
  await locked.promise;
  const change = ask('PATCH', `${a}/`, { filters: of(inCohort(b)) });
  await eventually(async () => {
    const { rows } = await api.pool.query(
      "select from pg_locks where locktype = 'advisory' and not granted and objid = $1",
      [anna.projectId],
    );
    return rows.length > 0;
  });
  release.resolve();
  await holder;
  expect((await change).body.detail).toBe('Cohorts cannot reference other cohorts in a loop.');
});

test('a circle of three is seen, and one cohort may be named in two ways', async () => {
  const [a, b, c] = [await create(of(email)), await create(of(email)), await create(of(email))];
  const name = (id: number, ...others: number[]) =>
    ask('PATCH', `${id}/`, { filters: of(...others.map((other) => inCohort(other))) });
  expect((await name(a, b)).status).toBe(200);
  expect((await name(b, c)).status).toBe(200);
  expect((await name(c, a)).body.detail).toBe('Cohorts cannot reference other cohorts in a loop.');
  expect((await name(c, c)).body.detail).toBe('Cohorts cannot reference other cohorts in a loop.');
  expect((await name(a, b, c)).status).toBe(200);
});

test('a list of long cohorts ends early, and goes on there', async () => {
  const tenant = await api.createTenant('Long');
  await api.pool.query(
    `insert into cohorts (project_id, name, filters, created_at)
     select $1, 'c' || n, $2, now() - n * interval '1 second' from generate_series(1, 45) n`,
    [tenant.projectId, long(400_000)],
  );
  const first = await ask('GET', '?limit=1000', undefined, { tenant });
  expect([first.status, first.body.count, first.body.results.length]).toEqual([200, 45, 41]);
  const rest = await ask('GET', '?limit=1000&offset=41', undefined, { tenant });
  expect(rest.body.results.map((one: { name: string }) => one.name)).toEqual(['c42', 'c43', 'c44', 'c45']);
});

test('cohorts that have not changed are not read again', async () => {
  const tenant = await api.createTenant('Stamps');
  const [a, b] = [await create(of(email), 'A', tenant), await create(of(email), 'B', tenant)];
  const first = await readCohortDefinitions(api.pool, tenant.projectId, []);
  expect(first.map((row) => row.id)).toEqual([a, b]);
  await ask('PATCH', `${b}/`, { filters: of({ ...email, value: 'new' }) }, { tenant });
  const second = await readCohortDefinitions(api.pool, tenant.projectId, first);
  expect(second[0]).toBe(first[0]);
  expect([second.length, second[1]?.filters]).toEqual([2, expect.stringContaining('"new"')]);
  // Without a stamp, nothing is known.
  const unknown = first.map(({ stamp: _, ...row }) => row);
  expect(await readCohortDefinitions(api.pool, tenant.projectId, unknown)).toEqual(second);
  await ask('PATCH', `${a}/`, { deleted: true }, { tenant });
  expect(await readCohortDefinitions(api.pool, tenant.projectId, second)).toEqual([second[1]]);
});

test('a process keeps what it has prepared of cohorts until one of them changes', async () => {
  const tenant = await api.createTenant('Prepared');
  const id = await create(of(email), 'A', tenant);
  const definitions = createDefinitions({
    listener: { subscribe: () => () => undefined, isListening: () => true },
    logger: { warn: () => undefined },
    readFlags: (projectId, known) => readDefinitions(api.pool, projectId, known),
    readCohorts: (projectId, known) => readCohortDefinitions(api.pool, projectId, known),
  });
  const set = async () => (await definitions.fresh(tenant.projectId))?.set;
  const first = await set();
  const path = `/api/projects/${tenant.projectId}/feature_flags/`;
  expect((await api.request(tenant, 'POST', path, { key: 'beside' })).statusCode).toBe(201);
  const second = await set();
  expect([second?.flags.length, second?.cohorts === first?.cohorts]).toEqual([1, true]);
  await ask('PATCH', `${id}/`, { filters: of({ ...email, value: 'new' }) }, { tenant });
  expect((await set())?.cohorts).not.toBe(first?.cohorts);
  await definitions.close();
});

test('a cohort stays static, or not', async () => {
  const dynamic = await create(of(email));
  const listed = (await ask('POST', '', { name: 'Listed', is_static: true })).body.id;
  for (const [id, is_static] of [
    [dynamic, true],
    [listed, false],
  ] as const) {
    const refused = await ask('PATCH', `${id}/`, { is_static });
    expect([refused.status, refused.body.attr]).toEqual([400, 'is_static']);
    expect((await ask('GET', `${id}/`)).body.is_static).toBe(!is_static);
  }
});
