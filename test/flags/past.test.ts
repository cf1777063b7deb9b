// What a flag was, and what it was for somebody.
import { describe, expect, test } from '@jest/globals';
import { differencesOf } from '../../flags/rules/differences.ts';
import { apiForFile, tenantsForFile } from '../support/api.ts';
import { EVERYBODY, where } from './support.ts';

const api = apiForFile();
const { anna, bert } = tenantsForFile(api, 'anna', 'bert');

const project = (rest: string, tenant = anna) => `/api/projects/${tenant.projectId}/${rest}`;
async function ask(method: string, rest: string, body?: object) {
  const answer = await api.request(anna, method, project(rest), body);
  expect([answer.statusCode < 300, answer.body]).toEqual([true, expect.any(String)]);
  return answer.json();
}
const create = (body: object) => ask('POST', 'feature_flags/', { filters: EVERYBODY, ...body });
const patch = (id: number, body: object) => ask('PATCH', `feature_flags/${id}/`, body);
/** The time of the database, between what was done and what is done next. */
async function now(): Promise<string> {
  const { rows } = await api.pool.query(
    'select to_char(clock_timestamp() at time zone \'utc\', \'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"\') as now, pg_sleep(0.002)',
  );
  return rows[0].now;
}
const explain = (id: number, distinctId: string, at: string, more: object = {}) =>
  api.request(anna, 'POST', project(`feature_flags/${id}/explain/`), {
    distinct_id: distinctId,
    at,
    ...more,
  });
const told = async (id: number, distinctId: string, at: string, more: object = {}) => {
  const answer = await explain(id, distinctId, at, more);
  expect([answer.statusCode, answer.body]).toEqual([200, expect.any(String)]);
  return answer.json();
};
async function capture(distinctId: string, set: object) {
  const answer = await api.request(null, 'POST', '/i/v0/e/', {
    ...{ api_key: anna.projectToken, event: 'seen', distinct_id: distinctId },
    properties: { $set: set },
  });
  expect(answer.statusCode).toBe(200);
}
const plan = (value: string) => ({ key: 'plan', type: 'person', operator: 'exact', value });

test('a page of large versions ends early, and the next one goes on', async () => {
  const flag = await create({ key: 'large' });
  await api.pool.query(
    `insert into feature_flag_revisions (project_id, flag_id, version, changed_at, document)
     select project_id, flag_id, n, changed_at, json_build_object('name', n, 'text', repeat('x', 500000))
     from feature_flag_revisions, generate_series(2, 51) n where flag_id = $1`,
    [flag.id],
  );
  const seen: { version: number; changes: { path: string }[] }[] = [];
  let pages = 0;
  for (let url: string | null = project(`feature_flags/${flag.id}/history/?limit=1000`); url !== null; ) {
    const answer = await api.request(anna, 'GET', url);
    expect(answer.rawPayload.length).toBeLessThan(17_000_000);
    const { results, next } = answer.json();
    seen.push(...results);
    pages += 1;
    url = next && new URL(next).pathname + new URL(next).search;
  }
  expect(pages).toBe(2);
  expect(seen.map((one) => one.version)).toEqual(Array.from({ length: 51 }, (_, at) => 51 - at));
  expect(seen.slice(0, 49).every(({ changes }) => changes.length === 1 && changes[0]?.path === 'name')).toBe(
    true,
  );
});

test('a version is a flag as it was', async () => {
  const flag = await create({ key: 'versioned', name: 'first', tags: ['a'] });
  const later = { groups: [{ properties: [], rollout_percentage: 1.5 }] };
  await patch(flag.id, { name: 'second', filters: later, tags: [] });
  const first = await ask('GET', `feature_flags/${flag.id}/versions/1/`);
  expect(first).toEqual({
    ...{ ...flag, updated_at: expect.any(String), is_historical: true },
    ...{ version_timestamp: first.updated_at, modified_by: flag.created_by.id },
  });
  expect(await ask('GET', `feature_flags/${flag.id}/versions/2/`)).toMatchObject({
    ...{ id: flag.id, key: 'versioned', name: 'second', version: 2, tags: [], is_historical: false },
    filters: { groups: [{ rollout_percentage: 1.5 }] },
  });
  for (const [version, tenant] of [
    ...['0', '3', 'x', '99999999999'].map((one) => [one, anna] as const),
    ['1', bert] as const,
  ]) {
    const path = project(`feature_flags/${flag.id}/versions/${version}/`);
    expect((await api.request(tenant, 'GET', path)).statusCode).toBe(404);
  }
});

describe('the versions of a flag', () => {
  test('tell what each changed', async () => {
    const { id } = await create({
      key: 'versions',
      filters: { groups: [{ properties: [plan('pro')], rollout_percentage: 10 }] },
    });
    await patch(id, {
      filters: { groups: [{ properties: [plan('team')], rollout_percentage: 50 }] },
      tags: ['a'],
    });
    await patch(id, { active: false });
    const { count, results } = await ask('GET', `feature_flags/${id}/history/`);
    expect(count).toBe(3);
    expect(results.map((one: { changes: unknown }) => one.changes)).toEqual([
      [{ path: 'active', before: true, after: false }],
      [
        { path: 'filters.groups.0.properties.0.value', before: 'pro', after: 'team' },
        { path: 'filters.groups.0.rollout_percentage', before: 10, after: 50 },
        { path: 'tags.0', after: 'a' },
      ],
      [],
    ]);
    const page = await ask('GET', `feature_flags/${id}/history/?limit=1&offset=1`);
    expect(page.results).toHaveLength(1);
    expect(page.results[0].changes).toHaveLength(3);
  });

  test.each([
    [{ a: 1 }, { a: 1 }, []],
    [
      { a: 1 },
      { a: 2, b: null },
      [
        { path: 'a', before: 1, after: 2 },
        { path: 'b', after: null },
      ],
    ],
    [{ a: [1, 2] }, { a: [1] }, [{ path: 'a.1', before: 2 }]],
    [{ a: [] }, { a: {} }, [{ path: 'a', before: [], after: {} }]],
    [{ toString: 1 }, {}, [{ path: 'toString', before: 1 }]],
  ])('differ as %j and %j', (left, right, differences) => {
    expect(differencesOf(left, right)).toEqual(differences);
  });
});

describe('what a flag was for somebody at a time', () => {
  test('follows from its version, its cohorts, the flags it asks about, and the last event of the person', async () => {
    const cohort = await ask('POST', 'cohorts/', {
      ...{ name: 'Paying', filters: { properties: { type: 'AND', values: [plan('pro')] } } },
    });
    const base = await create({
      key: 'base',
      filters: where({ key: 'id', type: 'cohort', value: cohort.id }),
    });
    const flag = await create({
      key: 'asks',
      filters: where({ type: 'flag', key: String(base.id), operator: 'flag_evaluates_to', value: true }),
    });
    const unseen = await now();
    await capture('ann', { plan: 'free' });
    const free = await now();
    await capture('ann', { plan: 'pro' });
    const pro = await now();
    await ask('PATCH', `cohorts/${cohort.id}/`, {
      filters: { properties: { type: 'AND', values: [plan('team')] } },
    });
    const narrowed = await now();
    await patch(base.id, { filters: EVERYBODY });
    const opened = await now();
    await patch(flag.id, { active: false });
    const disabled = await now();
    const values = [];
    for (const at of [unseen, free, pro, narrowed, opened, disabled]) {
      const { value, active, rests_on } = await told(flag.id, 'ann', at);
      values.push([value, active, rests_on.person?.event ?? null]);
    }
    expect(values).toEqual([
      [false, true, null],
      [false, true, 'seen'],
      [true, true, 'seen'],
      [false, true, 'seen'],
      [true, true, 'seen'],
      [true, false, 'seen'],
    ]);
    const { rests_on: basis, conditions } = await told(flag.id, 'ann', narrowed);
    expect(basis.flags.map((one: { key: string; version: number }) => [one.key, one.version])).toEqual([
      ['asks', 1],
      ['base', 1],
    ]);
    expect(basis.cohorts).toMatchObject([{ name: 'Paying', version: 2 }]);
    expect(basis.notes.join(' ')).toContain('The person is shown as the event found them');
    expect(conditions[0].filters[0]).toMatchObject({ passed: false, found: false });
    const today = await api.request(anna, 'POST', project(`feature_flags/${flag.id}/explain/`), {
      distinct_id: 'ann',
    });
    expect(today.json().rests_on).toBeUndefined();
  });

  test('sees who was in a static cohort, what was set by hand, and relative dates of then', async () => {
    const cohort = await ask('POST', 'cohorts/', { name: 'Listed', is_static: true });
    const flag = await create({
      key: 'listed',
      filters: where({ key: 'id', type: 'cohort', value: cohort.id }),
    });
    await capture('ben', { joined: '2020-01-01' });
    const before = await now();
    await ask('POST', `cohorts/${cohort.id}/add_persons_to_static_cohort/`, { distinct_ids: ['ben'] });
    const listed = await now();
    await ask('POST', `feature_flags/${flag.id}/overrides/`, { distinct_id: 'ben', value: false });
    const byHand = await now();
    expect((await told(flag.id, 'ben', before)).value).toBe(false);
    expect((await told(flag.id, 'ben', listed)).value).toBe(true);
    expect(await told(flag.id, 'ben', byHand)).toMatchObject({ value: false, reason: { code: 'override' } });
  });

  test('rests on events of its own project only', async () => {
    const flag = await create({ key: 'own-events', filters: where(plan('pro')) });
    const answer = await api.request(null, 'POST', '/i/v0/e/', {
      ...{ api_key: bert.projectToken, event: 'seen', distinct_id: 'shared' },
      properties: { $set: { plan: 'pro' } },
    });
    expect(answer.statusCode).toBe(200);
    expect(await told(flag.id, 'shared', await now())).toMatchObject({
      value: false,
      rests_on: { person: null },
    });
  });

  test('is refused where nothing is known, and for others', async () => {
    const before = await now();
    const flag = await create({ key: 'young' });
    const refused = await explain(flag.id, 'ann', before);
    expect([refused.statusCode, refused.json().attr, refused.json().detail]).toEqual([
      400,
      'at',
      expect.stringMatching(/^The flag did not exist yet at /),
    ]);
    const given = await explain(flag.id, 'ann', await now(), { person_properties: { plan: 'pro' } });
    expect([given.statusCode, given.json().attr]).toEqual([400, 'at']);
    for (const at of ['yesterday', '2026-01-01', '', 5, '999999-01-01T00:00:00Z']) {
      expect([at, (await explain(flag.id, 'ann', at as string)).statusCode]).toEqual([at, 400]);
    }
    const url = `/api/projects/${bert.projectId}/feature_flags/${flag.id}/explain/`;
    expect((await api.request(bert, 'POST', url, { distinct_id: 'ann', at: await now() })).statusCode).toBe(
      404,
    );
  });
});
