// What a project may plan, set by hand and offer, and how long its lists are.
import { expect, test } from '@jest/globals';
import { answersOf } from '../../api/flags/early-access-features.ts';
import type { OfferedFeature } from '../../flags/rows/early-access.ts';
import { apiForFile, type Tenant, tenantsForFile } from '../support/api.ts';
import { queriesOf } from '../support/query-log.ts';
import { EVERYBODY, storeFlag, where } from './support.ts';

const api = apiForFile();
const { anna } = tenantsForFile(api, 'anna');

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';
async function ask(method: Method, rest: string, body?: object, tenant = anna) {
  const answer = await api.request(tenant, method, `/api/projects/${tenant.projectId}/${rest}`, body);
  return { status: answer.statusCode, body: answer.body === '' ? null : answer.json() };
}
const long = (bytes: number) =>
  where({ key: 'a', type: 'person', operator: 'exact', value: 'x'.repeat(bytes) });
const LATER = '2090-01-01T00:00:00Z';
const planned = (flagId: number, groups: unknown) => ({
  ...{ record_id: flagId, model_name: 'FeatureFlag', scheduled_at: LATER },
  payload: { operation: 'add_release_condition', value: { groups } },
});

/** Plans changes as the API would, in one statement. */
const plan = (tenant: Tenant, flagId: number, changes: number, bytes: number) =>
  api.pool.query(
    `insert into feature_flag_scheduled_changes (project_id, flag_id, payload, scheduled_at)
     select $1, $2, $3, timestamptz '2090-01-01' + n * interval '1 second' from generate_series(1, $4::int) n`,
    [
      ...[tenant.projectId, flagId],
      JSON.stringify({ operation: 'add_release_condition', value: { groups: long(bytes).groups } }),
      changes,
    ],
  );

test('what is planned for the flags of a project has a bounded size', async () => {
  const tenant = await api.createTenant('Planner');
  const flagId = await storeFlag(api.pool, tenant.projectId, { key: 'planned', filters: EVERYBODY });
  await plan(tenant, flagId, 41, 400_000);
  const small = await ask('POST', 'scheduled_changes/', planned(flagId, EVERYBODY.groups), tenant);
  expect(small.status).toBe(201);
  const refused = await ask('POST', 'scheduled_changes/', planned(flagId, long(400_000).groups), tenant);
  expect([refused.status, refused.body.code, refused.body.attr, refused.body.detail]).toEqual([
    400,
    'limit',
    'payload',
    expect.stringMatching(
      /^The changes .* that are still to come would have \d+ bytes; 16777216 are allowed\.$/,
    ),
  ]);
  const { payload } = planned(flagId, long(400_000).groups);
  const change = (id: number) => ask('PATCH', `scheduled_changes/${id}/`, { payload }, tenant);
  expect((await change(small.body.id)).body.code).toBe('limit');
  // One that is replaced does not count, and neither does what was tried.
  const { rows } = await api.pool.query(
    'select min(id) as id from feature_flag_scheduled_changes where project_id = $1',
    [tenant.projectId],
  );
  expect((await change(rows[0].id)).status).toBe(200);
  await api.pool.query(
    'update feature_flag_scheduled_changes set executed_at = now() where project_id = $1 and id = $2',
    [tenant.projectId, rows[0].id],
  );
  expect((await change(small.body.id)).status).toBe(200);
});

test('a list of long scheduled changes ends early, and goes on there', async () => {
  const tenant = await api.createTenant('Reader');
  const flagId = await storeFlag(api.pool, tenant.projectId, { key: 'planned', filters: EVERYBODY });
  await plan(tenant, flagId, 45, 400_000);
  const first = await ask('GET', 'scheduled_changes/?limit=1000', undefined, tenant);
  expect([first.body.count, first.body.results.length]).toEqual([45, 41]);
  const rest = await ask('GET', 'scheduled_changes/?limit=1000&offset=41', undefined, tenant);
  const seconds = rest.body.results.map(
    (one: { scheduled_at: string }) => Date.parse(one.scheduled_at) / 1_000,
  );
  expect(seconds.map((one: number) => one - Date.parse(LATER) / 1_000)).toEqual([42, 43, 44, 45]);
});

test('a list of rollouts does not read their conditions', async () => {
  const flagId = await storeFlag(api.pool, anna.projectId, { key: 'rolled', filters: long(1_000) });
  const body = { to_percentage: 50, from_percentage: 0, ends_at: new Date(Date.now() + 86_400_000) };
  expect((await ask('POST', `feature_flags/${flagId}/rollouts/`, body)).status).toBe(201);
  const { result, queries } = await queriesOf(() => ask('GET', `feature_flags/${flagId}/rollouts/`));
  expect(result.body.results).toMatchObject([{ status: 'running', to_percentage: 50 }]);
  expect(queries.filter((text) => /condition\b/.test(text))).toEqual([]);
});

test('the flags of a project have a bounded number of values by hand together', async () => {
  const tenant = await api.createTenant('Byhand');
  const flagId = await storeFlag(api.pool, tenant.projectId, { key: 'by-hand', filters: EVERYBODY });
  await api.pool.query(
    `insert into feature_flag_overrides (project_id, flag_id, distinct_id, value)
     select $1, 1000000 + n / 1000, 'u' || n, 'true' from generate_series(1, 19999) n`,
    [tenant.projectId],
  );
  const set = (distinct_id: string) =>
    ask('POST', `feature_flags/${flagId}/overrides/`, { distinct_id, value: false }, tenant);
  expect((await set('last')).status).toBe(200);
  const refused = await set('one too many');
  expect([refused.status, refused.body.code, refused.body.detail]).toEqual([
    400,
    'limit',
    'The flags of a project may have 20000 values by hand together. Use a cohort for more.',
  ]);
  // One that is there can be changed.
  expect((await set('last')).status).toBe(200);
});

test('the flags of a key in all projects are not told if they are more than an answer holds', async () => {
  const tenant = await api.createTenant('Siblings');
  const path = `/api/organizations/${tenant.organizationId}/`;
  const other = await api.request(tenant, 'POST', `${path}projects/`, { name: 'Other' });
  const projects = [tenant.projectId, other.json().id as number];
  for (const projectId of projects) {
    await storeFlag(api.pool, projectId, { key: 'same', filters: long(8_000_000) });
  }
  const siblings = () => api.request(tenant, 'GET', `${path}feature_flags/same/`);
  const told = (await siblings()).json() as { team_id: number }[];
  expect(told.map((one) => one.team_id).toSorted()).toEqual(projects.toSorted());
  await api.pool.query('update feature_flags set filters = $2 where project_id = $1', [
    projects[0],
    long(9_000_000),
  ]);
  const refused = await siblings();
  expect([refused.statusCode, refused.json().detail]).toEqual([
    400,
    expect.stringMatching(/^The filters of the 2 flags have \d+ bytes, and an answer has 16777216 at most/),
  ]);
});

const features = (tenant: Tenant, count: number, bytes: number, filterBytes = 10) =>
  api.pool.query(
    `with f as (
       insert into feature_flags (project_id, key, filters)
       select $1, 'f-' || n, $3 from generate_series(1, $2::int) n returning id, key)
     insert into early_access_features (project_id, id, flag_id, name, stage, payload, created_at)
     select $1, gen_random_uuid(), id, key, 'beta', json_build_object('a', repeat('x', $4)),
       now() + substr(key, 3)::int * interval '1 second' from f`,
    [tenant.projectId, count, JSON.stringify(long(filterBytes)), bytes],
  );

test('browsers are offered as many early access features as fit, the oldest ones', async () => {
  const tenant = await api.createTenant('Offers');
  await features(tenant, 80, 15_000);
  const answer = await api.app.inject({ url: `/api/early_access_features/?token=${tenant.projectToken}` });
  const names = answer.json().earlyAccessFeatures.map((one: { name: string }) => one.name);
  expect(names).toEqual(Array.from({ length: 69 }, (_, n) => `f-${n + 1}`));
});

test('a list of early access features ends early where their flags are long', async () => {
  const tenant = await api.createTenant('Features');
  await features(tenant, 45, 10, 400_000);
  const first = await ask('GET', 'early_access_feature/?limit=1000', undefined, tenant);
  expect([first.body.count, first.body.results.length]).toEqual([45, 41]);
  const rest = await ask('GET', 'early_access_feature/?limit=1000&offset=41', undefined, tenant);
  expect(rest.body.results.map((one: { name: string }) => one.name)).toEqual(['f-4', 'f-3', 'f-2', 'f-1']);
});

test('each list of early access features is written and packed once', async () => {
  const feature = (name: string, stage: 'alpha' | 'beta'): OfferedFeature => ({
    ...{ id: name, name, description: '', stage, documentationUrl: '', payload: {}, flagKey: name },
  });
  const answers = answersOf([feature('a', 'alpha'), feature('b', 'beta')]);
  const one = await answers.of(new Set(['beta']));
  // Stages that no feature has make no other list.
  expect(await answers.of(new Set(['concept', 'beta']))).toBe(one);
  const names = async (...stages: string[]) => {
    const { plain } = await answers.of(new Set(stages));
    return JSON.parse(plain.toString()).earlyAccessFeatures.map((other: { name: string }) => other.name);
  };
  expect([await names('beta'), await names('alpha', 'beta'), await names('concept')]).toEqual([
    ['b'],
    ['a', 'b'],
    [],
  ]);
});

test('the payload of an early access feature is measured in bytes', async () => {
  const feature = (text: string) =>
    ask('POST', 'early_access_feature/', { name: 'Bytes', stage: 'beta', payload: { text } });
  expect((await feature('é'.repeat(8_000))).status).toBe(400);
  expect((await feature('é'.repeat(7_900))).status).toBe(201);
});
