// Many flags at once: which a list chooses, and which go together.
import { expect, test } from '@jest/globals';
import { transaction } from '../../db/pool.ts';
import { lockFlags } from '../../flags/rows/flags.ts';
import { apiForFile, type Tenant, tenantsForFile } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { queriesOf } from '../support/query-log.ts';
import { EVERYBODY, storeFlag, where } from './support.ts';

const api = apiForFile();
const { anna, bert } = tenantsForFile(api, 'anna', 'bert');

const flags = (tenant: Tenant, rest = '') => `/api/projects/${tenant.projectId}/feature_flags/${rest}`;
async function create(key: string, filters: object = EVERYBODY, more: object = {}, tenant = anna) {
  const answer = await api.request(tenant, 'POST', flags(tenant), { key, filters, ...more });
  expect([answer.statusCode, answer.body]).toEqual([201, expect.any(String)]);
  return answer.json().id as number;
}
const remove = (body: object, tenant: Tenant | string = anna) =>
  api.request(tenant, 'POST', flags(anna, 'bulk_delete/'), body);
const listed = async (query: string) =>
  (await api.request(anna, 'GET', flags(anna, `?${query}`)))
    .json()
    .results.map((one: { key: string }) => one.key);
/** Those of queries that a change of flags makes. */
const aboutFlags = (queries: readonly string[]) =>
  queries.filter((text) => /feature_flag|early_access|activity_log|advisory/.test(text));
const share = (percentage: number) => ({ groups: [{ properties: [], rollout_percentage: percentage }] });
const on = (id: number) =>
  where({ type: 'flag', key: String(id), operator: 'flag_evaluates_to', value: true });

test('flags are deleted together, and those that something needs stay', async () => {
  const base = await create('base');
  const asking = await create('asking', on(base));
  const needed = await create('needed');
  const outside = await create('outside', on(needed));
  const theirs = await create('theirs', EVERYBODY, {}, bert);
  const answer = await remove({ ids: [base, asking, needed, theirs, base] });
  expect([answer.statusCode, answer.json()]).toEqual([
    200,
    {
      deleted: [
        { id: asking, key: 'asking', rollout_state: 'partial', active_variant: null },
        { id: base, key: 'base', rollout_state: 'fully_rolled_out', active_variant: null },
      ],
      errors: [
        {
          ...{ id: needed, key: 'needed' },
          reason: `Cannot delete this feature flag because other flags depend on it: outside (ID: ${outside})`,
        },
        { id: theirs, reason: 'Flag not found' },
      ],
    },
  ]);
  expect((await api.request(bert, 'GET', flags(bert, `${theirs}/`))).statusCode).toBe(200);
  const log = await api.request(anna, 'GET', flags(anna, `${base}/activity/`));
  expect(log.statusCode).toBe(404);
  const all = await api.request(
    anna,
    'GET',
    `/api/projects/${anna.projectId}/activity_log/?scope=FeatureFlag`,
  );
  const deletions = all.json().results.filter((one: { activity: string }) => one.activity === 'deleted');
  expect(deletions.map((one: { item_id: string }) => one.item_id).sort()).toEqual(
    [`${asking}`, `${base}`].sort(),
  );
  const made = await api.request(anna, 'POST', `/api/projects/${anna.projectId}/early_access_feature/`, {
    ...{ name: 'Offered', stage: 'beta' },
  });
  const kept = (await remove({ ids: [made.json().feature_flag.id] })).json();
  expect(kept).toMatchObject({
    deleted: [],
    errors: [{ reason: expect.stringMatching(/in use with early access features.* is called Offered\.$/) }],
  });
});

test('a chain of flags goes in one pass, whatever the order in which they are named', async () => {
  const ids = [await storeFlag(api.pool, anna.projectId, { key: 'chain 0', filters: EVERYBODY })];
  while (ids.length < 40) {
    const filters = on(ids.at(-1) as number);
    ids.push(await storeFlag(api.pool, anna.projectId, { key: `chain ${ids.length}`, filters }));
  }
  const { result, queries } = await queriesOf(() => remove({ ids }));
  const { deleted, errors } = result.json();
  expect([errors, deleted.map((one: { id: number }) => one.id)]).toEqual([[], ids.toReversed()]);
  const single = await create('single');
  const { queries: least } = await queriesOf(() => remove({ ids: [single] }));
  expect(aboutFlags(queries)).toEqual(aboutFlags(least));
});

test('a rollout ends with its flag, also if the flag goes with others', async () => {
  const ids = [await create('rolling-1', share(10)), await create('rolling-2', share(10))];
  for (const id of ids) {
    await api.pool.query(
      `insert into feature_flag_rollouts (project_id, id, flag_id, condition_index, condition, from_percentage,
         to_percentage, steps, starts_at, ends_at)
       values ($1, gen_random_uuid(), $2, 0, '{}', 10, 50, 2, now(), now() + interval '1 day')`,
      [anna.projectId, id],
    );
  }
  await remove({ ids });
  const { rows } = await api.pool.query(
    'select status from feature_flag_rollouts where flag_id = any($1::int[])',
    [ids],
  );
  expect(rows.map((row) => row.status)).toEqual(['cancelled', 'cancelled']);
});

test('tags of many flags are added, taken away and replaced, in a few statements', async () => {
  const ids: number[] = [];
  for (const key of ['tagged-1', 'tagged-2', 'tagged-3']) {
    ids.push(await create(key, EVERYBODY, { tags: ['old'] }));
  }
  const theirs = await create('tagged-theirs', EVERYBODY, {}, bert);
  const [one, two, three] = ids as [number, number, number];
  const tag = async (body: object) => {
    const answer = await api.request(anna, 'POST', flags(anna, 'bulk_update_tags/'), body);
    expect([answer.statusCode, answer.body]).toEqual([200, expect.any(String)]);
    return answer.json();
  };
  expect(await tag({ ids: [one, two, theirs, two], action: 'add', tags: ['New', 'new', 'old'] })).toEqual({
    updated: [
      { id: one, tags: ['old', 'new'] },
      { id: two, tags: ['old', 'new'] },
    ],
    skipped: [{ id: theirs, reason: 'Flag not found' }],
  });
  expect((await tag({ ids: [one], action: 'remove', tags: ['OLD'] })).updated).toEqual([
    { id: one, tags: ['new'] },
  ]);
  const { queries: many } = await queriesOf(() => tag({ ids, action: 'set', tags: ['x', 'y'] }));
  const { queries: single } = await queriesOf(() => tag({ ids: [one], action: 'set', tags: ['z'] }));
  expect(aboutFlags(many)).toEqual(aboutFlags(single));
  const read = async (id: number) => (await api.request(anna, 'GET', flags(anna, `${id}/`))).json();
  expect(await read(two)).toMatchObject({ tags: ['x', 'y'], version: 3 });
  expect(await read(three)).toMatchObject({ tags: ['x', 'y'], version: 2 });
  // What changes nothing makes no version.
  await tag({ ids: [three], action: 'add', tags: ['x'] });
  expect((await read(three)).version).toBe(2);
  const log = (await api.request(anna, 'GET', flags(anna, `${three}/activity/`))).json();
  expect(log.results[0]).toMatchObject({
    ...{ activity: 'updated', user: { email: anna.email }, is_system: false, team_id: anna.projectId },
    detail: {
      name: 'tagged-3',
      changes: [
        { type: 'FeatureFlag', action: 'changed', field: 'tags', before: ['old'], after: ['x', 'y'] },
      ],
    },
  });
  const tags = Array.from({ length: 99 }, (_, at) => `t${at}`);
  expect((await tag({ ids: [three], action: 'add', tags })).skipped).toEqual([
    { id: three, reason: 'The flag would have 101 tags; at most 100 are allowed.' },
  ]);
  for (const body of [
    { ids: [], action: 'add', tags: [] },
    { ids: [one], action: 'drop', tags: [] },
    { ids: [one], action: 'add' },
    { ids: Array(1_001).fill(one), action: 'set', tags: [] },
  ]) {
    expect((await api.request(anna, 'POST', flags(anna, 'bulk_update_tags/'), body)).statusCode).toBe(400);
  }
});

test('the answer says how far each was rolled out', async () => {
  const variants = (winner: number, group: object = {}) => ({
    groups: [{ properties: [], rollout_percentage: 100, ...group }],
    multivariate: {
      variants: [
        { key: 'winner', rollout_percentage: winner },
        { key: 'loser', rollout_percentage: 100 - winner },
      ],
    },
  });
  const cases = [
    ['none', share(0), 'not_rolled_out', null],
    ['some', share(50), 'partial', null],
    ['for-some', where({ key: 'email', type: 'person', value: 'a' }), 'partial', null],
    ['variant', variants(100), 'fully_rolled_out', 'winner'],
    ['forced', variants(50, { variant: 'loser' }), 'fully_rolled_out', 'loser'],
    ['mixed', variants(50), 'partial', null],
  ] as const;
  const ids: number[] = [];
  for (const [key, filters] of cases) ids.push(await create(key, filters));
  const status = (await api.request(anna, 'GET', flags(anna, `${ids[4]}/status/`))).json();
  expect(status.rollout).toEqual({
    ...{ effectively_full_rollout: true, has_targeting_conditions: false },
    ...{ max_rollout_percentage: 100, is_multivariate: true },
  });
  const { deleted } = (await remove({ ids })).json();
  expect(
    deleted.map((one: Record<string, unknown>) => [one.key, one.rollout_state, one.active_variant]),
  ).toEqual(cases.map(([key, , state, variant]) => [key, state, variant]));
});

test('filters choose what the list would show, and nothing is deleted by mistake', async () => {
  await create('old-one');
  await create('old-off', EVERYBODY, { active: false });
  await create('old-archived', EVERYBODY, { active: false, archived: true });
  await storeFlag(api.pool, anna.projectId, { key: 'survey-targeting-1', filters: EVERYBODY, active: false });
  expect(await listed('active=false')).toEqual(['old-off']);
  const off = (await remove({ filters: { active: 'false' } })).json();
  expect(off.deleted.map((one: { key: string }) => one.key)).toEqual(['old-off']);
  for (const body of [
    ...[{}, { ids: [1], filters: { search: 'x' } }, { filters: {} }, { filters: { serach: 'old' } }],
    ...[{ ids: [] }, { ids: ['x'] }, { filters: { active: 'true', serach: 'nothing' } }],
  ]) {
    expect([(await remove(body)).statusCode, body]).toEqual([400, body]);
  }
  const reading = (await api.createKey(anna, { scopes: ['feature_flag:read'] })).value;
  expect((await remove({ filters: { search: 'old' } }, reading)).statusCode).toBe(403);
  expect(await listed('search=old')).toEqual(['old-one']);
});

test('a search takes a space for what keys have in its place', async () => {
  await create('web-analytics');
  await create('web_dashboard', share(5), { name: 'The Dashboard' });
  await create('two-variants', {
    ...EVERYBODY,
    multivariate: { variants: ['a', 'b'].map((key) => ({ key, rollout_percentage: 50 })) },
  });
  expect(await listed('search=web%20ana')).toEqual(['web-analytics']);
  expect((await listed('search=%20web%20')).sort()).toEqual(['web-analytics', 'web_dashboard']);
  expect(await listed('search=the%20dash')).toEqual(['web_dashboard']);
  expect(await listed('search=web%25')).toEqual([]);
  expect(await listed('key=web_dashboard')).toEqual(['web_dashboard']);
  expect(await listed('key=web')).toEqual([]);
  expect(await listed('eligible_for_experiment=true')).toEqual(['two-variants']);
  const long = await api.request(anna, 'GET', flags(anna, `?search=${'a'.repeat(201)}`));
  expect(long.statusCode).toBe(400);
  for (const ids of [`[${anna.userId},99]`, `99,${anna.userId}`, `x,${anna.userId}`, '']) {
    expect((await listed(`search=web&created_by_id=${encodeURIComponent(ids)}`)).length).toBe(2);
  }
  expect(await listed(`created_by_id=${bert.userId}`)).toEqual([]);
  const reasons = async (query: string) =>
    Object.keys(
      (await api.request(anna, 'GET', flags(anna, `evaluation_reasons/?distinct_id=u&${query}`))).json(),
    );
  const both = ['web-analytics', 'web_dashboard'];
  for (const query of [
    `flag_keys=${encodeURIComponent(JSON.stringify(both))}`,
    `flag_keys=${both.join()}`,
    both.map((key) => `flag_keys=${key}`).join('&'),
  ]) {
    expect((await reasons(query)).sort()).toEqual(both);
  }
});

test('a flag with one variant for everybody is stale like any other that decides nothing', async () => {
  const id = await create('decided', {
    groups: [{ properties: [], rollout_percentage: 100, variant: 'a' }],
    multivariate: { variants: ['a', 'b'].map((key) => ({ key, rollout_percentage: 50 })) },
  });
  await api.pool.query(`update feature_flags set created_at = now() - interval '31 days' where id = $1`, [
    id,
  ]);
  expect((await api.request(anna, 'GET', flags(anna, `${id}/status/`))).json().status).toBe('STALE');
  expect(await listed('active=STALE')).toEqual(['decided']);
});

test('plans say what they cannot do', async () => {
  const id = await create('planned');
  const url = `/api/projects/${anna.projectId}/scheduled_changes/`;
  const plan = (more: object) =>
    api.request(anna, 'POST', url, {
      ...{ record_id: String(id), model_name: 'FeatureFlag', scheduled_at: '2126-01-01T00:00:00Z' },
      ...{ payload: { operation: 'update_status', value: false }, ...more },
    });
  for (const more of [
    { is_recurring: true },
    { recurrence_interval: 'daily' },
    { cron_expression: '0 9 * * *' },
  ]) {
    expect([(await plan(more)).statusCode, more]).toEqual([400, more]);
  }
  const made = await plan({ is_recurring: false, recurrence_interval: null });
  expect([made.statusCode, made.json()]).toEqual([
    201,
    expect.objectContaining({ is_recurring: false, recurrence_interval: null }),
  ]);
  const change = (body: object) => api.request(anna, 'PATCH', `${url}${made.json().id}/`, body);
  expect((await change({ record_id: String(id + 1) })).json().detail).toMatch(
    /^Cannot change the target record/,
  );
  expect((await change({ model_name: 'Other' })).statusCode).toBe(400);
  expect((await change({ record_id: id, scheduled_at: '2126-02-01T00:00:00Z' })).statusCode).toBe(200);
});

test('a feature is opened to everybody, and its flag stays one for persons', async () => {
  const url = `/api/projects/${anna.projectId}/early_access_feature/`;
  const made = (await api.request(anna, 'POST', url, { name: 'For all', stage: 'beta' })).json();
  const groups = { aggregation_group_type_index: 0, groups: [{ properties: [], rollout_percentage: 100 }] };
  const grouped = await api.request(anna, 'PATCH', flags(anna, `${made.feature_flag.id}/`), {
    filters: groups,
  });
  expect(grouped.json().reason).toContain('For all');
  expect([grouped.statusCode, grouped.json().detail]).toEqual([
    400,
    'Cannot use group aggregation in any condition set when the flag is linked to an Early Access Feature.',
  ]);
  const opened = await api.request(anna, 'PATCH', `${url}${made.id}/`, {
    ...{ stage: 'general-availability', rollout_to_all: true },
  });
  expect(opened.json()).toMatchObject({
    stage: 'general-availability',
    feature_flag: {
      filters: { feature_enrollment: null, groups: [{ properties: [], rollout_percentage: 100 }] },
    },
  });
});

test('changes of one project wait for each other without the connections that others need', async () => {
  const ids: number[] = [];
  for (let flag = 0; flag < 30; flag += 1) ids.push(await create(`waiting-${flag}`));
  const release = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const holder = transaction(api.pool, async (client) => {
    await lockFlags(client, anna.projectId);
    locked.resolve();
    await release.promise;
  });
  await locked.promise;
  // Each flag twice: what comes second sees what came first.
  const change = async (id: number, at: number): Promise<number> => {
    const { statusCode } = await api.request(anna, 'PATCH', flags(anna, `${id}/`), { name: `change ${at}` });
    // A slow machine lets the last ones wait for too long.
    return statusCode === 429 ? change(id, at) : statusCode;
  };
  // Cohorts and surveys have locks of their own, and wait their turn too.
  const other = async (path: string, body: object): Promise<number> => {
    const { statusCode } = await api.request(anna, 'POST', `/api/projects/${anna.projectId}/${path}/`, body);
    return statusCode === 429 ? other(path, body) : statusCode;
  };
  const filters = { properties: { type: 'OR', values: [] } };
  const changes = [
    ...[...ids, ...ids].map(change),
    ...ids.map((id) => other('cohorts', { name: `c${id}`, filters })),
    ...ids.map((id) => other('surveys', { name: `s${id}`, type: 'popover' })),
  ];
  const waiting = async () => {
    const { rows } = await api.pool.query(
      "select count(*)::int as count from pg_locks where locktype = 'advisory' and not granted and objid = $1",
      [anna.projectId],
    );
    return rows[0].count;
  };
  await eventually(async () => (await waiting()) > 0);
  const { rows } = await api.pool.query(
    `select count(*)::int as count from pg_stat_activity where datname = current_database() and state <> 'idle'
       and wait_event_type = 'Lock'`,
  );
  expect(rows[0].count).toBe(1);
  expect((await api.request(bert, 'GET', flags(bert))).statusCode).toBe(200);
  await create('meanwhile', EVERYBODY, {}, bert);
  expect(await waiting()).toBe(1);
  release.resolve();
  await holder;
  const answers = await Promise.all(changes);
  expect(answers).toEqual([...Array(60).fill(200), ...Array(60).fill(201)]);
});

test('a free key is found in one statement, however many are taken', async () => {
  const tenant = await api.createTenant('Taker');
  const feature = async () => {
    // A name without letters and digits gives no key.
    const body = { name: '???', stage: 'beta' };
    const path = `/api/projects/${tenant.projectId}/early_access_feature/`;
    const answer = await api.request(tenant, 'POST', path, body);
    expect([answer.statusCode, answer.body]).toEqual([201, expect.any(String)]);
    return answer.json().feature_flag.key as string;
  };
  const back = async () => {
    const id = await create('came-back', EVERYBODY, {}, tenant);
    await api.request(tenant, 'PATCH', flags(tenant, `${id}/`), { deleted: true });
    await storeFlag(api.pool, tenant.projectId, { key: 'came-back', filters: EVERYBODY });
    return async () => {
      const answer = await api.request(tenant, 'PATCH', flags(tenant, `${id}/`), { deleted: false });
      return answer.json().key as string;
    };
  };
  const take = (base: string) =>
    api.pool.query(
      `insert into feature_flags (project_id, key, filters)
       select $1, $2 || case when n > 1 then '-' || n else '' end, '{"groups":[]}' from generate_series(1, 400) n
       where n not in (7, 390) on conflict do nothing`,
      [tenant.projectId, base],
    );
  expect(await feature()).toBe('early-access');
  const few = await queriesOf(feature);
  await take('early-access');
  await storeFlag(api.pool, tenant.projectId, { key: 'early-access-back', filters: EVERYBODY });
  const many = await queriesOf(feature);
  expect([few.result, many.result]).toEqual(['early-access-2', 'early-access-7']);
  expect(aboutFlags(many.queries)).toHaveLength(aboutFlags(few.queries).length);
  expect(await feature()).toBe('early-access-390');
  expect(await feature()).toBe('early-access-401');

  const comesBack = await back();
  await take('came-back');
  const returned = await queriesOf(comesBack);
  expect(returned.result).toBe('came-back-7');
  expect(aboutFlags(returned.queries).length).toBeLessThan(30);
});

test('flags that move to a project that has their keys get free ones', async () => {
  const [from, to] = [await api.createTenant('From'), await api.createTenant('To')];
  const put = (tenant: Tenant, keys: string[]) =>
    Promise.all(keys.map((key) => storeFlag(api.pool, tenant.projectId, { key, filters: EVERYBODY })));
  await put(to, ['same', 'same-2', 'same.x', 'own']);
  const ids = await put(from, ['same', 'same-3', 'free']);
  await api.pool.query('update feature_flags set project_id = $2 where project_id = $1', [
    from.projectId,
    to.projectId,
  ]);
  const { rows } = await api.pool.query('select id, key from feature_flags where project_id = $1', [
    to.projectId,
  ]);
  const keys = rows.map((row) => row.key);
  expect(new Set(keys).size).toBe(7);
  const moved = rows.filter((row) => ids.includes(row.id)).map((row) => row.key);
  expect(moved).toContain('free');
  expect(moved.filter((key) => key.startsWith('same')).every((key) => /^same-(3|4|3-2)$/.test(key))).toBe(
    true,
  );
});
