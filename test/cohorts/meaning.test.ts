// A cohort that is not static has the same members wherever somebody asks: in flags, in queries, in counts, in
// lists, in exports and in filters of functions.
import { beforeAll, expect, test } from '@jest/globals';
import { noteMembersChanged } from '../../cohorts/rows/counting.ts';
import { countCohorts } from '../../cohorts/runs/count-members.ts';
import { ensureEventPartitions } from '../../db/event-partitions.ts';
import { transaction } from '../../db/pool.ts';
import { filterOf, Moment } from '../../functions/filter.ts';
import { filterGlobalsOf } from '../../functions/rules/globals.ts';
import { lookUpListed } from '../../functions/static-cohorts.ts';
import { build } from '../../hog/ast/index.ts';
import { createSchema, printStatement, selection } from '../../hog/sql/index.ts';
import { dice, type RandomUser, randomCohorts, randomUser } from '../flags/agreement/random.ts';
import { storeCohort, storeFlag, where } from '../flags/support.ts';
import { parserForFile, queryOf, rowsOfReader } from '../models/support.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { rounds } from '../support/rounds.ts';
import { insertEvents } from '../support/rows.ts';

const api = apiForFile();
const parser = parserForFile();
let tenant: Tenant;

/** Some pages of a count. */
const PERSONS = rounds(3_000, 10_000);
/** Who is deleted later, and all after them. */
const GONE = PERSONS * 0.9;
/** How many persons ask for their flags. Each of them is in all other comparisons. */
const ASKING = rounds(200, PERSONS);
const work = { signal: new AbortController().signal, beat: () => {} };
/** The persons as they were stored. */
let people: { id: string; distinct_id: string; properties: Record<string, unknown> }[] = [];
/** The id of each cohort, and of the persons. */
const cohorts: number[] = [];
const idOf = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;

/** Names cohorts by the ids that they have in the database. */
function renamed(tree: Record<string, unknown>, ids: ReadonlyMap<number, number>): Record<string, unknown> {
  if (Array.isArray(tree.values)) return { ...tree, values: tree.values.map((one) => renamed(one, ids)) };
  return tree.type === 'cohort' ? { ...tree, value: ids.get(tree.value as number) } : tree;
}

/** Each fifth person came by an advertisement, before anybody stored where they came from first. */
const propertiesOf = (user: RandomUser, number: number) =>
  number % 5 === 0 ? { ...user.personProperties, utm_source: 'ad' } : user.personProperties;

beforeAll(async () => {
  tenant = await api.createTenant('Meaning');
  const roll = dice(42);
  const persons = Array.from({ length: PERSONS }, (_, number) => ({
    id: idOf(number),
    ...{
      distinct_id: `user-${number}`,
      properties: propertiesOf(randomUser(roll, number), number),
    },
  }));
  people = JSON.parse(JSON.stringify(persons));
  await api.pool.query(
    `with given as (select * from json_to_recordset($2) as g (id uuid, distinct_id text, properties jsonb)),
     known as (
       insert into person_distinct_ids (project_id, distinct_id, person_id, version, changed_at)
       select $1, distinct_id, id, 0, now() from given)
     insert into persons (project_id, id, created_at, is_identified, properties, version, changed_at)
     select $1, id, now(), true, properties, 0, now() from given`,
    [tenant.projectId, JSON.stringify(persons)],
  );
  await ensureEventPartitions(api.pool, new Date(DAY), 1);
  await insertEvents(
    api.pool,
    persons.map(({ id, distinct_id }) => ({
      ...{ project_id: tenant.projectId, person_id: id, distinct_id, timestamp: new Date(DAY).toISOString() },
    })),
  );
  const listed = await storeCohort(api.pool, tenant.projectId, { name: 'listed', isStatic: true });
  await api.pool.query(
    `insert into cohort_people (project_id, cohort_id, person_id)
     select $1, $2, id from persons where project_id = $1 and right(id::text, 1) in ('0', '3', '7')`,
    [tenant.projectId, listed],
  );
  const ids = new Map<number, number>();
  // The distinct id is part of a request and not of a person, so no count can look at it.
  for (const { id, properties } of randomCohorts(dice(30), 40)) {
    if (JSON.stringify(properties).includes('"distinct_id"')) {
      ids.set(id, listed);
      continue;
    }
    const stored = await storeCohort(api.pool, tenant.projectId, {
      name: `cohort ${id}`,
      properties: renamed(properties, ids),
    });
    ids.set(id, stored);
    cohorts.push(stored);
  }
  const first = { key: '$initial_utm_source', type: 'person', operator: 'exact', value: 'ad' };
  const properties = { type: 'OR', values: [{ type: 'AND', values: [first] }] };
  cohorts.push(await storeCohort(api.pool, tenant.projectId, { name: 'by an advertisement', properties }));
  for (const id of [listed, ...cohorts]) {
    const filters = where({ type: 'cohort', key: 'id', value: id, operator: 'in' });
    await storeFlag(api.pool, tenant.projectId, { key: String(id), filters });
  }
});

/** Who is in a cohort, as a query sees it. */
async function byQuery(cohortId: number): Promise<string[]> {
  const statement = printStatement(
    selection({
      ...{ table: 'persons', select: [build.field('id')] },
      where: build.compare('in cohort', build.field('id'), build.integer(cohortId)),
      limit: PERSONS,
    }),
    { schema: createSchema('current'), projectId: tenant.projectId, timezone: 'UTC' },
  );
  const { rows } = await api.pool.query({
    ...{ text: statement.text, values: statement.values, rowMode: 'array' },
  });
  return rows.map(([id]) => id).sort();
}

/** Shows the first person that differs, not all of them. */
function expectSame(cohortId: number, found: string[], queried: string[]): void {
  const wrong = queried.findIndex((id, index) => found[index] !== id);
  expect([cohortId, found.length, found[wrong]]).toEqual([cohortId, queried.length, queried[wrong]]);
}

/** A busy machine may take long. */
const UNHURRIED = { turn: 600_000, pass: 600_000 };
const DAY = Date.UTC(2026, 2, 2);

/** Whose events an export takes. Each person has one event. */
async function byExport(cohortId: number): Promise<string[]> {
  const query = await queryOf(parser, {
    projectId: tenant.projectId,
    interval: { start: DAY, end: DAY + 86_400_000 },
    filters: [{ type: 'cohort', key: 'id', operator: 'in', value: cohortId }],
    hogqlQuery: 'select person_id from events',
  });
  const rows = await rowsOfReader(api.reader, query);
  return rows.map((row) => String(row.person_id)).sort();
}

/** For whom a function with a filter on the cohort runs. */
async function byFunction(cohortId: number): Promise<string[]> {
  const filters = { properties: [{ type: 'cohort', key: 'id', operator: 'in', value: cohortId }] };
  const answer = await api.request(tenant, 'POST', `/api/projects/${tenant.projectId}/hog_functions/`, {
    ...{ hog: 'return 1', enabled: true, filters },
  });
  const { bytecode } = answer.json().filters;
  const listed = await lookUpListed(
    (ask) => ask(api.pool),
    tenant.projectId,
    [{ own: bytecode, mappings: null }],
    people.map(({ id }) => id),
  );
  const moment = new Moment();
  moment.set(Date.now(), () => 1);
  const filter = filterOf(bytecode, moment);
  const facts = { uuid: '', event: 'seen', properties: {}, timestamp: '', elements_chain: '' };
  return people.flatMap(({ id, distinct_id, properties }) => {
    const person = { id, properties };
    const { matched, error } = filter(filterGlobalsOf({ ...facts, distinct_id }, person, [], listed(id)));
    expect(error).toBeUndefined();
    return matched ? [id] : [];
  });
}

test('flags, queries, counts, lists, exports and functions agree about every person', async () => {
  const before = await api.request(tenant, 'GET', `/api/projects/${tenant.projectId}/cohorts/${cohorts[0]}/`);
  expect(before.json()).toMatchObject({ count: null, is_calculating: true, last_calculation: null });
  expect(await countCohorts(api.pool, work, UNHURRIED)).toBe(cohorts.length);
  const members = new Map<string, Set<string>>();
  for (const cohortId of cohorts) {
    const queried = await byQuery(cohortId);
    expectSame(cohortId, await byFunction(cohortId), queried);
    members.set(String(cohortId), new Set(queried));
    expectSame(cohortId, await byExport(cohortId), queried);
    const shown = await api.request(tenant, 'GET', `/api/projects/${tenant.projectId}/cohorts/${cohortId}/`);
    expect(shown.json()).toMatchObject({
      ...{ count: queried.length, is_calculating: false, errors_calculating: 0 },
      last_calculation: expect.any(String),
    });
    const url = `/api/projects/${tenant.projectId}/cohorts/${cohortId}/persons/?limit=100`;
    const listed = (await api.request(tenant, 'GET', url)).json();
    expect(listed.count).toBe(queried.length);
    expect(listed.results.map(({ id }: { id: string }) => id)).toEqual(queried.slice(0, 100));
  }
  // Some have nobody and some everybody, and most have a part of the people.
  const sizes = [...members.values()].map((one) => one.size);
  expect(sizes.filter((size) => size > 0 && size < PERSONS).length).toBeGreaterThan(cohorts.length / 2);
  expect(sizes.at(-1)).toBe(PERSONS / 5);
  for (let number = 0; number < ASKING; number += 1) {
    const payload = { api_key: tenant.projectToken, distinct_id: `user-${number}`, geoip_disable: true };
    // On a busy machine a statement may take longer than flags wait for one.
    const flags = await eventually(async () => {
      const answer = await api.app.inject({ method: 'POST', url: '/flags?v=2', payload });
      return answer.json().errorsWhileComputingFlags === false && answer.json().flags;
    });
    const byFlags = cohorts.filter((id) => flags[String(id)].enabled);
    const byQueries = cohorts.filter((id) => members.get(String(id))?.has(idOf(number)));
    expect([number, byFlags]).toEqual([number, byQueries]);
  }
});

test('what has changed is counted again, and nothing else', async () => {
  expect(await countCohorts(api.pool, work, UNHURRIED)).toBe(0);
  const cohortId = cohorts[0] as number;
  const filters = {
    properties: {
      type: 'AND',
      values: [{ key: 'email', type: 'person', operator: 'is_set', value: 'is_set' }],
    },
  };
  const url = `/api/projects/${tenant.projectId}/cohorts/${cohortId}/`;
  const changed = await api.request(tenant, 'PATCH', url, { filters });
  expect([changed.statusCode, changed.json().is_calculating]).toEqual([200, true]);
  expect(await countCohorts(api.pool, work, UNHURRIED)).toBe(cohorts.length);
  const { rows } = await api.pool.query(
    `select count(*)::int as count from persons where project_id = $1 and properties ? 'email'`,
    [tenant.projectId],
  );
  expect((await api.request(tenant, 'GET', url)).json().count).toBe(rows[0].count);
  // Who is gone is counted no longer, also beyond the last person.
  await transaction(api.pool, (client) =>
    client.query('delete from persons where project_id = $1 and id >= $2', [tenant.projectId, idOf(GONE)]),
  );
  await api.pool.query(
    `update cohorts set counted_at = now() - interval '16 minutes' where project_id = $1`,
    [tenant.projectId],
  );
  await noteMembersChanged(api.pool, tenant.projectId);
  expect(await countCohorts(api.pool, work, UNHURRIED)).toBe(cohorts.length);
  const left = await api.pool.query(
    'select count(*)::int as count from cohort_people where project_id = $1 and cohort_id = any($2) and person_id >= $3',
    [tenant.projectId, cohorts, idOf(GONE)],
  );
  expect(left.rows[0].count).toBe(0);
});

test('a count that is stopped ends, and the next one does all of it', async () => {
  const stop = new AbortController();
  await api.pool.query('update cohorts set counted_at = null where project_id = $1', [tenant.projectId]);
  const stopped = countCohorts(api.pool, {
    signal: stop.signal,
    beat: () => stop.abort(new Error('The worker stops.')),
  });
  await expect(stopped).rejects.toThrow('The worker stops.');
  expect(await countCohorts(api.pool, work, UNHURRIED)).toBe(cohorts.length);
});
