// Drafts of flags, tried with stored persons.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createFlags, type Flags } from '../../api/flags/dependencies.ts';
import { knownCohorts } from '../../cohorts/rows/definitions.ts';
import { transaction } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { tryFlag } from '../../flags/commands/try-flag.ts';
import { placeOf } from '../../flags/engine/hash.ts';
import { createTrials, type Trials } from '../../flags/trial/trials.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { EVERYBODY, storeCohort, where } from './support.ts';

const api = apiForFile();
let anna: Tenant;
let bert: Tenant;
let trials: Trials | undefined;
let flags: Flags | undefined;
const PERSONS = 1_200;

async function storePersons(tenant: Tenant, prefix: string, count: number) {
  await api.pool.query(
    `with made as (
       insert into persons (project_id, id, created_at, is_identified, properties, version, changed_at)
       select $1, gen_random_uuid(), now(), true,
         jsonb_build_object('plan', case when n % 3 = 0 then 'pro' else 'free' end, 'n', n), 1, now()
       from generate_series(1, $3::int) n returning id, properties)
     insert into person_distinct_ids (project_id, distinct_id, person_id, version, changed_at)
     select $1, $2 || '-' || (properties ->> 'n') || suffix, id, 1, now() from made, unnest(array['', '-phone']) suffix
     where suffix = '' or (properties ->> 'n')::int % 10 = 0`,
    [tenant.projectId, prefix, count],
  );
}

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  bert = await api.createTenant('Bert');
  await storePersons(anna, 'a', PERSONS);
  await storePersons(bert, 'b', 7);
});
afterAll(async () => {
  await trials?.close();
  await flags?.close();
});

const url = (rest = '', tenant = anna) => `/api/projects/${tenant.projectId}/feature_flags/${rest}`;
const create = async (body: object, tenant = anna) => {
  const answer = await api.request(tenant, 'POST', url('', tenant), { filters: EVERYBODY, ...body });
  expect([answer.statusCode, answer.body]).toEqual([201, expect.any(String)]);
  return answer.json();
};
const attempt = (id: number | 'new', body: object, tenant = anna) =>
  api.request(tenant, 'POST', url(`${id}/test/`, tenant), body);
async function tried(id: number | 'new', body: object, tenant = anna) {
  const answer = await attempt(id, body, tenant);
  expect([answer.statusCode, answer.body]).toEqual([200, expect.any(String)]);
  return answer.json();
}
/** All distinct ids of Anna's persons. */
const ids = Array.from({ length: PERSONS }, (_, index) => index + 1).flatMap((n) =>
  n % 10 === 0 ? [`a-${n}`, `a-${n}-phone`] : [`a-${n}`],
);
const pro = { key: 'plan', type: 'person', operator: 'exact', value: 'pro' };
const isPro = (id: string) => Number(id.split('-')[1]) % 3 === 0;
const inShare = (key: string, share: number) => (id: string) => placeOf(`${key}.${id}`) <= share / 100;
const share = (rollout_percentage: number) => ({ groups: [{ properties: [], rollout_percentage }] });

describe('a draft', () => {
  test('of a new flag counts distinct ids, each by its own hash', async () => {
    const answer = await tried('new', { key: 'fresh', filters: share(30) });
    const on = ids.filter(inShare('fresh', 30)).length;
    expect(answer.searched).toEqual({
      ...{ persons: PERSONS, distinct_ids: ids.length, too_large: 0, is_complete: true },
    });
    expect(answer.proposed).toEqual([
      { value: false, failed: false, count: ids.length - on },
      { value: true, failed: false, count: on },
    ]);
    expect([answer.running, answer.changed, answer.changes]).toEqual([null, 0, []]);
    expect(answer.sample).toHaveLength(20);
    for (const { distinct_id, proposed } of answer.sample) {
      expect(proposed.value).toBe(inShare('fresh', 30)(distinct_id));
    }
    expect((await api.request(anna, 'GET', url('?search=fresh'))).json().count).toBe(0);
  });

  test('says who would change against what runs, and is not stored', async () => {
    const flag = await create({ key: 'grows', filters: share(20) });
    const answer = await tried(flag.id, {
      filters: { groups: [{ properties: [pro], rollout_percentage: 60 }] },
      sample: 8,
    });
    const had = inShare('grows', 20);
    const gets = (id: string) => isPro(id) && inShare('grows', 60)(id);
    const on = ids.filter((id) => !had(id) && gets(id)).length;
    const off = ids.filter((id) => had(id) && !gets(id)).length;
    expect(answer.changed).toBe(on + off);
    expect(new Map(answer.changes.map((one: { to: boolean; count: number }) => [one.to, one.count]))).toEqual(
      new Map([
        [true, on],
        [false, off],
      ]),
    );
    expect(answer.running.find((one: { value: boolean }) => one.value).count).toBe(ids.filter(had).length);
    expect(answer.sample).toHaveLength(8);
    for (const one of answer.sample) {
      expect([one.running.value, one.proposed.value]).toEqual([had(one.distinct_id), gets(one.distinct_id)]);
      expect(one.running.value).not.toBe(one.proposed.value);
    }
    const stored = (await api.request(anna, 'GET', url(`${flag.id}/`))).json();
    expect(stored).toEqual(flag);
    const same = await tried(flag.id, {});
    expect([same.changed, same.running]).toEqual([0, same.proposed]);
    const off2 = await tried(flag.id, { active: false });
    expect([off2.proposed, off2.changed]).toEqual([
      [{ value: false, failed: false, count: ids.length }],
      ids.filter(had).length,
    ]);
  });

  test('counts variants, cohorts of both kinds, other flags, values by hand and remembered ids', async () => {
    const dynamic = await storeCohort(api.pool, anna.projectId, {
      name: 'Pro',
      properties: { type: 'AND', values: [pro] },
    });
    const listed = await storeCohort(api.pool, anna.projectId, { name: 'Listed', isStatic: true });
    await api.pool.query(
      `insert into cohort_people (project_id, cohort_id, person_id)
       select project_id, $2, person_id from person_distinct_ids where project_id = $1 and distinct_id in ('a-10', 'a-2')`,
      [anna.projectId, listed],
    );
    const cohort = (value: number, operator = 'in') => ({ key: 'id', type: 'cohort', value, operator });
    const count = (answer: { proposed: { value: unknown; count: number }[] }, value: unknown) =>
      answer.proposed.find((one) => one.value === value)?.count ?? 0;
    expect(count(await tried('new', { key: 'c', filters: where(cohort(dynamic)) }), true)).toBe(
      ids.filter(isPro).length,
    );
    expect(count(await tried('new', { key: 'c', filters: where(cohort(listed)) }), true)).toBe(3);
    const base = await create({ key: 'base', filters: where(cohort(listed)) });
    const depends = where({
      type: 'flag',
      key: String(base.id),
      operator: 'flag_evaluates_to',
      value: false,
    });
    expect(count(await tried('new', { key: 'd', filters: depends }), true)).toBe(ids.length - 3);
    const variants = [
      { key: 'red', rollout_percentage: 50 },
      { key: 'blue', rollout_percentage: 50 },
    ];
    const multi = await create({ key: 'multi', filters: { ...EVERYBODY, multivariate: { variants } } });
    await api.request(anna, 'POST', url(`${multi.id}/overrides/`), { distinct_id: 'a-1', value: false });
    const answer = await tried(multi.id, {});
    const red = ids.filter((id) => id !== 'a-1' && placeOf(`multi.${id}variant`) < 0.5).length;
    expect([count(answer, 'red'), count(answer, 'blue'), count(answer, false)]).toEqual([
      red,
      ids.length - 1 - red,
      1,
    ]);
    await api.pool.query(
      `insert into feature_flag_hash_keys (project_id, person_id, flag_key, hash_key)
       select project_id, person_id, 'stays', 'anon' from person_distinct_ids where project_id = $1 and distinct_id = 'a-10'`,
      [anna.projectId],
    );
    const stays = await tried('new', {
      key: 'stays',
      filters: share(50),
      ensure_experience_continuity: true,
    });
    const remembered = (id: string) => (/^a-10(?:-phone)?$/.test(id) ? 'anon' : id);
    expect(count(stays, true)).toBe(ids.map(remembered).filter(inShare('stays', 50)).length);
  });

  test('is checked as if it were saved', async () => {
    const refusals: [body: object, reason: RegExp][] = [
      [{ filters: EVERYBODY }, /may not be blank/],
      [{ key: 'x', filters: where({ ...pro, operator: 'regex', value: '(' }) }, /./],
      [{ key: 'x', filters: where({ key: 'id', type: 'cohort', value: 2_000_000_000 }) }, /does not exist/],
      [
        {
          key: 'x',
          filters: where({ type: 'flag', key: '2000000000', operator: 'flag_evaluates_to', value: true }),
        },
        /non-existent/,
      ],
      [{ key: 'x', filters: EVERYBODY, max_distinct_ids: 0 }, /./],
    ];
    for (const [body, reason] of refusals) {
      const answer = await attempt('new', body);
      expect([answer.statusCode, answer.json().detail]).toEqual([400, expect.stringMatching(reason)]);
    }
    const flag = await create({ key: 'walled' });
    expect((await attempt(flag.id, {}, bert)).statusCode).toBe(404);
    expect((await attempt(2_000_000_000, {})).statusCode).toBe(404);
  });

  test('sees the persons of its project only', async () => {
    const answer = await tried('new', { key: 'x', filters: EVERYBODY }, bert);
    expect([
      answer.searched.persons,
      answer.sample.every((one: { distinct_id: string }) => one.distinct_id.startsWith('b-')),
    ]).toEqual([7, true]);
  });

  test('tells what it leaves open', async () => {
    const answer = await tried('new', {
      key: 'x',
      filters: EVERYBODY,
      bucketing_identifier: 'device_id',
      max_distinct_ids: 1,
    });
    expect(answer.searched).toMatchObject({ persons: 500, is_complete: false });
    expect(answer.rests_on.join(' ')).toMatch(/Not all persons were looked at.*bucketed by device/s);
  });
});

describe('a draft that costs much', () => {
  async function dependencies(options: object) {
    trials = createTrials(options);
    flags ??= createFlags({
      ...{ lanePool: api.pool, listener: api.listener, logger: { warn: () => undefined } as never },
      ...{ registry: createRegistry('trials'), config: api.config, isPrepared: () => true },
    } as never);
    return {
      ...{ pool: api.pool, keyring: undefined, knownCohorts, limits: { flags: 100, bytes: 1e9 } },
      ...{ definitions: flags.definitions, trials },
      read: <T>(work: Parameters<typeof transaction<T>>[1]) => transaction(api.pool, work),
    };
  }
  const query = (draft: object) => ({
    ...{ projectId: anna.projectId, flagId: null, mostDistinctIds: 1_000_000, sample: 5 },
    draft: { key: 'x', filters: EVERYBODY, ...draft },
  });

  test('ends when its thread takes too long', async () => {
    const deps = await dependencies({ timeoutMs: 0 });
    await expect(tryFlag(deps, query({}))).rejects.toThrow(/The conditions take more than 0 seconds/);
    await deps.trials.close();
  });

  test('ends with what it has when its time is over', async () => {
    const deps = await dependencies({});
    const answer = await tryFlag(deps, query({}), undefined, { longest: 0 });
    expect(answer.searched).toEqual({ persons: 0, distinct_ids: 0, too_large: 0, is_complete: false });
    await deps.trials.close();
  });

  test('leaves out persons whose properties are too large, and reads of others what it needs', async () => {
    const carl = await api.createTenant('Carl');
    const put = (properties: object) =>
      api.pool.query(
        `with p as (insert into persons (project_id, id, created_at, is_identified, properties, version, changed_at)
           values ($1, $2, now(), true, $3, 1, now()) returning id)
         insert into person_distinct_ids (project_id, distinct_id, person_id, version, changed_at) select $1, p.id::text, p.id, 1, now() from p`,
        [carl.projectId, uuidv7(), properties],
      );
    await put({ plan: 'pro', story: 'x'.repeat(1_000_000) });
    await put({ plan: 'x'.repeat(1_000_000) });
    const answer = await tried('new', { key: 'x', filters: where(pro) }, carl);
    expect(answer.searched).toEqual({ persons: 2, distinct_ids: 1, too_large: 1, is_complete: true });
    expect(answer.proposed).toEqual([{ value: true, failed: false, count: 1 }]);
  });

  test('ends when the client is gone', async () => {
    const deps = await dependencies({});
    const gone = new AbortController();
    gone.abort(new Error('gone'));
    await expect(tryFlag(deps, query({}), gone.signal)).rejects.toThrow('gone');
    await deps.trials.close();
  });
});

describe('whom a condition is about', () => {
  const radius = async (condition: object, groupTypeIndex?: number | null, tenant = anna) => {
    const body = { condition, group_type_index: groupTypeIndex };
    const answer = await api.request(tenant, 'POST', url('user_blast_radius/', tenant), body);
    return answer.statusCode === 200 ? answer.json() : [answer.statusCode, answer.json().detail];
  };
  const person = (key: string, value: unknown, operator = 'exact') => ({
    type: 'person',
    key,
    value,
    operator,
  });
  const whole = (affected: number, total = PERSONS) => ({ affected, total, is_complete: true });

  test('is counted by persons, whatever the rollout', async () => {
    const pro = { properties: [person('plan', ['pro'])], rollout_percentage: 5 };
    expect(await radius(pro)).toEqual(whole(400));
    expect(await radius({})).toEqual(whole(PERSONS));
    expect(await radius({ properties: [person('plan', 'none')] }, null)).toEqual(whole(0));
    // Two ids of one person.
    const ids = ['a-10', 'a-10-phone', 'a-11', 'b-1'];
    expect(await radius({ properties: [person('distinct_id', ids)] })).toEqual(whole(2));
    const cohort = await storeCohort(api.pool, anna.projectId, {
      name: 'pro',
      properties: { type: 'AND', values: [person('plan', 'pro')] },
    });
    const inCohort = { type: 'cohort', key: 'id', value: cohort };
    expect(await radius({ properties: [inCohort, person('n', '10', 'lte')] })).toEqual(whole(3));
    expect(await radius(pro, null, bert)).toEqual(whole(2, 7));
  });

  test('is counted by groups', async () => {
    await api.pool.query(
      `insert into groups (project_id, group_type_index, group_key, id, created_at, updated_at, properties, version)
       select $1, kind, 'org-' || n, gen_random_uuid(), now(), now(), jsonb_build_object('size', n), 1
       from generate_series(1, 600) n, unnest(array[0, 1]) kind where kind = 0 or n <= 5`,
      [anna.projectId],
    );
    const of = (key: string, value: unknown, operator: string, index = 0) => ({
      properties: [{ type: 'group', group_type_index: index, key, value, operator }],
    });
    expect(await radius(of('size', '50', 'lte'), 0)).toEqual(whole(50, 600));
    expect(await radius(of('$group_key', ['org-1', 'org-3', 'x'], 'exact', 1), 1)).toEqual(whole(2, 5));
    expect(await radius({ properties: [] }, 1)).toEqual(whole(5, 5));
    expect(await radius({ properties: [] }, 2)).toEqual(whole(0, 0));
    expect(await radius({ properties: [] }, 0, bert)).toEqual(whole(0, 0));
    expect(await radius(of('size', '50', 'lte', 1), 0)).toEqual([
      400,
      "Filters are not valid (group properties must match the condition set's group type)",
    ]);
  });

  test('is not counted for conditions that no flag may have', async () => {
    expect(await radius({ properties: [person('plan', ['a'], 'regex')] })).toEqual([
      400,
      "Invalid value for operator regex: ['a']",
    ]);
    expect(await radius({ properties: [{ type: 'cohort', key: 'id', value: 987_654 }] })).toEqual([
      400,
      'Cohort with id 987654 does not exist',
    ]);
    const none = await api.request(anna, 'POST', url('user_blast_radius/'), {});
    expect([none.statusCode, none.json().attr]).toEqual([400, 'condition']);
    const foreign = await api.request(bert, 'POST', url('user_blast_radius/'), { condition: {} });
    expect(foreign.statusCode).toBe(404);
  });
});
