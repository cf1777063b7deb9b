// Which versions of flags and cohorts are kept, and what becomes of deleted ones.
import { describe, expect, test } from '@jest/globals';
import { COHORT_VERSIONS, forgetCohorts } from '../../cohorts/rows/forgetting.ts';
import type { VersionBounds } from '../../db/versions.ts';
import { expirePlans, FLAG_VERSIONS, forgetFlags } from '../../flags/rows/forgetting.ts';
import { keepVersions } from '../../tenancy/versions.ts';
import { apiForFile, tenantsForFile } from '../support/api.ts';
import { EVERYBODY, where } from './support.ts';

const api = apiForFile();
const { anna, bert } = tenantsForFile(api, 'anna', 'bert');

const MEBIBYTE = 1024 * 1024;
const BOUNDS: VersionBounds = { newest: 3, days: 365, bytes: 10 * MEBIBYTE };
const work = () => ({ signal: new AbortController().signal, beat: () => undefined });
const keepFlags = (bounds: Partial<VersionBounds> = {}, now?: Date) =>
  keepVersions(api.pool, { ...FLAG_VERSIONS, forget: forgetFlags }, { ...BOUNDS, ...bounds }, work(), now);
const keepCohorts = (bounds: Partial<VersionBounds> = {}) =>
  keepVersions(api.pool, { ...COHORT_VERSIONS, forget: forgetCohorts }, { ...BOUNDS, ...bounds }, work());

const ask = (method: string, rest: string, body?: object, tenant = anna) =>
  api.request(tenant, method, `/api/projects/${tenant.projectId}/${rest}`, body);
async function done(method: string, rest: string, body?: object, tenant = anna) {
  const answer = await ask(method, rest, body, tenant);
  expect([answer.statusCode < 300, answer.body]).toEqual([true, expect.any(String)]);
  return answer.json();
}
/** Makes a flag with so many versions. */
async function flagWith(key: string, versions: number, tenant = anna, filters: object = EVERYBODY) {
  const flag = await done('POST', 'feature_flags/', { key, filters }, tenant);
  for (let version = 2; version <= versions; version += 1) {
    await done('PATCH', `feature_flags/${flag.id}/`, { name: `version ${version}` }, tenant);
  }
  return flag;
}
const versionsOf = async (id: number): Promise<number[]> => {
  const { rows } = await api.pool.query(
    'select version from feature_flag_revisions where flag_id = $1 order by version',
    [id],
  );
  return rows.map((row) => row.version);
};
/** Makes what has happened until now older. */
const age = (days: number) =>
  Promise.all(
    ['feature_flag_revisions', 'cohort_revisions'].map((table) =>
      api.pool.query(`update ${table} set changed_at = changed_at - make_interval(days => $1)`, [days]),
    ),
  );
const soon = () => new Date(Date.now() + 3_600_000).toISOString();
/** Text that cannot be compressed. */
const noise = (bytes: number) =>
  Array.from({ length: bytes / 16 }, () => Math.random().toString(36).slice(2, 18).padEnd(16, 'x')).join('');

describe('of a flag', () => {
  test('the newest are kept however old, and others for a year', async () => {
    const old = await flagWith('old', 6);
    await age(400);
    const young = await flagWith('young', 6);
    await done('PATCH', `feature_flags/${old.id}/`, { name: 'today' });
    await keepFlags();
    expect(await versionsOf(old.id)).toEqual([5, 6, 7]);
    expect(await versionsOf(young.id)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test('a project that changes nothing is looked at once an hour', async () => {
    const flag = await flagWith('quiet', 6, bert);
    await age(400);
    const minute = (number: number) => new Date(Date.UTC(2100, 0, 1, 0, number));
    await keepFlags({}, minute((bert.projectId + 1) % 60));
    expect(await versionsOf(flag.id)).toHaveLength(6);
    await keepFlags({}, minute(bert.projectId % 60));
    expect(await versionsOf(flag.id)).toEqual([4, 5, 6]);
  });

  test('a version that is gone is told of as such, by every way to ask for one', async () => {
    const base = await flagWith('base', 5);
    const cohort = await done('POST', 'cohorts/', {
      ...{ name: 'Paying', filters: { properties: { type: 'AND', values: [] } } },
    });
    const onBase = { key: String(base.id), type: 'flag', value: true, operator: 'flag_evaluates_to' };
    const inCohort = { key: 'id', type: 'cohort', value: cohort.id, operator: 'in' };
    const asks = await flagWith('asks', 1, anna, where(onBase));
    const counts = await flagWith('counts', 1, anna, where(inCohort));
    for (const name of ['a', 'b', 'c']) await done('PATCH', `cohorts/${cohort.id}/`, { name });
    await age(400);
    const at = new Date(Date.now() - 400 * 86_400_000 + 3_600_000).toISOString();
    const explain = (id: number) =>
      ask('POST', `feature_flags/${id}/explain/`, { distinct_id: 'user-1', at });
    expect((await explain(asks.id)).json()).toMatchObject({ value: true });
    for (const name of ['x', 'y', 'z']) {
      await done('PATCH', `feature_flags/${base.id}/`, { name });
      await done('PATCH', `cohorts/${cohort.id}/`, { name });
    }
    await keepFlags();
    await keepCohorts();
    expect(await versionsOf(base.id)).toEqual([6, 7, 8]);

    const rolled = await ask('POST', `feature_flags/${base.id}/roll_back/`, { version: 2 });
    expect([rolled.statusCode, rolled.json().detail]).toEqual([
      400,
      'Version 2 of the flag is no longer kept.',
    ]);
    const never = await ask('POST', `feature_flags/${base.id}/roll_back/`, { version: 9 });
    expect(never.json().detail).toBe('The flag has no version 9.');
    const shown = await ask('GET', `feature_flags/${base.id}/versions/2/`);
    expect([shown.statusCode, shown.json().detail]).toEqual([
      404,
      'Version 2 of the flag is no longer kept.',
    ]);
    const history = await done('GET', `feature_flags/${base.id}/history/`);
    expect(history.results.map((one: { version: number }) => one.version)).toEqual([8, 7, 6]);
    expect(history.count).toBe(3);
    for (const [id, what] of [
      [base.id, 'flag "base"'],
      [asks.id, 'flag "base"'],
      [counts.id, 'cohort "x"'],
    ]) {
      const answer = await explain(id as number);
      expect([answer.statusCode, answer.json().attr]).toEqual([400, 'at']);
      expect(answer.json().detail).toContain(`What the ${what} was at ${at} is no longer known`);
    }
    await done('POST', `feature_flags/${base.id}/roll_back/`, { version: 7 });
  });

  test('so many bytes are kept in a project, the newest ones, and what flags are now', async () => {
    const tenant = await api.createTenant('Filler');
    const other = await flagWith('untouched', 3, bert);
    const first = await flagWith('first', 2, tenant, where({ ...property, value: noise(100_000) }));
    const flag = await flagWith('large', 1, tenant);
    for (let version = 2; version <= 8; version += 1) {
      const filters = where({ ...property, value: noise(400_000) });
      await done('PATCH', `feature_flags/${flag.id}/`, { filters }, tenant);
    }
    await keepFlags({ newest: 100, bytes: 1_300_000 });
    expect(await versionsOf(flag.id)).toEqual([6, 7, 8]);
    expect(await versionsOf(first.id)).toEqual([2]);
    expect(await versionsOf(other.id)).toEqual([1, 2, 3]);
    const { rows } = await api.pool.query(
      'select sum(pg_column_size(document))::float8 as bytes from feature_flag_revisions where project_id = $1',
      [tenant.projectId],
    );
    expect(rows[0].bytes).toBeLessThan(1.5 * MEBIBYTE);
  });

  test('a flag that was deleted a year ago is gone with all that belonged to it; a younger one comes back', async () => {
    const gone = await flagWith('gone', 2);
    await done('POST', `feature_flags/${gone.id}/overrides/`, { distinct_id: 'user-1', value: true });
    const change = { operation: 'update_status', value: false };
    const planned = await done('POST', 'scheduled_changes/', {
      ...{ record_id: String(gone.id), model_name: 'FeatureFlag', payload: change, scheduled_at: soon() },
    });
    await done('PATCH', `feature_flags/${gone.id}/`, { deleted: true });
    const active = await flagWith('active', 1);
    await age(400);
    const young = await flagWith('young-deleted', 2);
    await done('PATCH', `feature_flags/${young.id}/`, { deleted: true });
    await keepFlags();
    expect((await ask('PATCH', `feature_flags/${gone.id}/`, { deleted: false })).statusCode).toBe(404);
    expect(await versionsOf(gone.id)).toEqual([]);
    for (const table of ['feature_flag_overrides', 'feature_flag_scheduled_changes']) {
      const { rows } = await api.pool.query(`select from ${table} where flag_id = $1`, [gone.id]);
      expect([table, rows.length]).toEqual([table, 0]);
    }
    expect((await ask('GET', `scheduled_changes/${planned.id}/`)).statusCode).toBe(404);
    await done('PATCH', `feature_flags/${young.id}/`, { deleted: false });
    expect((await done('GET', `feature_flags/${active.id}/`)).active).toBe(true);
  });

  test('deleted flags do not add up: they go with their last version when there are too many bytes', async () => {
    const tenant = await api.createTenant('Maker');
    const ids: number[] = [];
    for (let number = 0; number < 6; number += 1) {
      const value = noise(300_000);
      const flag = await flagWith(`made-${number}`, 1, tenant, where({ ...property, value }));
      await done('PATCH', `feature_flags/${flag.id}/`, { deleted: true }, tenant);
      ids.push(flag.id);
    }
    await keepFlags({ bytes: MEBIBYTE });
    const { rows } = await api.pool.query('select id from feature_flags where project_id = $1', [
      tenant.projectId,
    ]);
    expect(rows.map((row) => row.id)).toEqual(ids.slice(-2));
  });

  test('plans that are over are forgotten but for the last ones', async () => {
    const tenant = await api.createTenant('Planner');
    const flag = await flagWith('planned', 1, tenant);
    await api.pool.query(
      `insert into feature_flag_scheduled_changes (project_id, flag_id, payload, scheduled_at, executed_at)
       select $1, $2, json_build_object('number', n), clock_timestamp(), case when n < 6 then clock_timestamp() - n * interval '1 day' end
       from generate_series(1, 6) n`,
      [tenant.projectId, flag.id],
    );
    const numbers = async () => {
      const { rows } = await api.pool.query(
        `select (payload ->> 'number')::int as number from feature_flag_scheduled_changes where project_id = $1 order by 1`,
        [tenant.projectId],
      );
      return rows.map((row) => row.number);
    };
    const now = new Date(Date.UTC(2100, 0, 1, 0, (tenant.projectId + 1) % 60));
    const bounds = { kept: 3, bytes: 1_000_000, days: 36_500, limit: 100 };
    expect(await expirePlans(api.pool, { ...bounds, now })).toBe(0);
    now.setUTCMinutes(tenant.projectId % 60);
    await expirePlans(api.pool, { ...bounds, now });
    expect(await numbers()).toEqual([1, 2, 3, 6]);
    // What is still to come counts for nothing, however long it is.
    await api.pool.query(
      `update feature_flag_scheduled_changes set payload = json_build_object('number', payload -> 'number', 'long', repeat('x', 400))
       where project_id = $1 and payload ->> 'number' in ('2', '6')`,
      [tenant.projectId],
    );
    await expirePlans(api.pool, { ...bounds, bytes: 300, now });
    expect(await numbers()).toEqual([1, 6]);
  });
});

const property = { key: 'plan', type: 'person', operator: 'exact' };

test('of a cohort the same holds, and the members of one that was deleted a year ago are forgotten', async () => {
  const made = (name: string) => done('POST', 'cohorts/', { name, is_static: true });
  const [gone, kept] = [await made('Gone'), await made('Kept')];
  await api.pool.query(
    'insert into cohort_people (project_id, cohort_id, person_id) select $1, n, gen_random_uuid() from unnest($2::int[]) n',
    [anna.projectId, [gone.id, kept.id]],
  );
  for (const name of ['a', 'b', 'c', 'd']) await done('PATCH', `cohorts/${kept.id}/`, { name });
  await done('PATCH', `cohorts/${gone.id}/`, { deleted: true });
  await age(400);
  await done('PATCH', `cohorts/${kept.id}/`, { name: 'today' });
  await keepCohorts();
  const { rows } = await api.pool.query(
    `select cohort_id as id, array_agg(version order by version) as versions,
       (select count(*)::int from cohort_people p where p.cohort_id = r.cohort_id) as members
     from cohort_revisions r where cohort_id = any($1::int[]) group by 1`,
    [[gone.id, kept.id]],
  );
  expect(rows).toEqual([{ id: kept.id, versions: [4, 5, 6], members: 1 }]);
  const { rows: left } = await api.pool.query('select from cohort_people where cohort_id = $1', [gone.id]);
  expect(left).toHaveLength(0);
});
