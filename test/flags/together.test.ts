// Changes of flags and cohorts at the same moment.
import { beforeAll, describe, expect, test } from '@jest/globals';
import { knownCohorts } from '../../cohorts/reads/known-cohorts.ts';
import { transaction } from '../../db/pool.ts';
import { lockFlags } from '../../flags/rows/flags.ts';
import { LOCK_KINDS } from '../../flags/rows/locks.ts';
import { carryOutChange, stepRollout } from '../../flags/runs/plans.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { EVERYBODY, where } from './support.ts';

const api = apiForFile();
let anna: Tenant;

beforeAll(async () => {
  anna = await api.createTenant('Anna');
});

const project = (rest: string) => `/api/projects/${anna.projectId}/${rest}`;
const ask = (method: string, rest: string, body: object) => api.request(anna, method, project(rest), body);
const cohort = async (name: string) =>
  (
    await ask('POST', 'cohorts/', {
      name,
      filters: { properties: { type: 'AND', values: [{ key: 'a', type: 'person', value: 'b' }] } },
    })
  ).json().id as number;
const naming = (id: number) => where({ key: 'id', type: 'cohort', value: id, operator: 'in' });

type Query = (sql: string, values?: unknown[]) => Promise<unknown>;

/**
 * Does something in a transaction that stays open until a request waits for it, and then something else. Returns the answer of
 * the request.
 */
async function whileOpen<Answer>(
  work: (query: Query) => Promise<unknown>,
  request: () => Promise<Answer>,
  after: (query: Query) => Promise<unknown> = async () => undefined,
) {
  const client = await api.pool.connect();
  try {
    await client.query('begin');
    const query: Query = (sql, values) => client.query(sql, values);
    await work(query);
    const answer = request();
    await eventually(async () => {
      const { rows } = await api.pool.query(
        `select from pg_locks l join pg_stat_activity a using (pid)
         where not l.granted and a.datname = current_database()`,
      );
      return rows.length > 0;
    });
    await after(query);
    await client.query('commit');
    return await answer;
  } finally {
    client.release();
  }
}

test('a change is computed again when somebody else has changed the flag meanwhile', async () => {
  const { id } = (
    await ask('POST', 'feature_flags/', { key: 'both', name: 'first', filters: EVERYBODY })
  ).json();
  const answer = await whileOpen(
    async (query) => {
      await query('select pg_advisory_xact_lock($1, $2)', [LOCK_KINDS.flagsOfProject, anna.projectId]);
      await query("update feature_flags set name = 'theirs', version = version + 1 where id = $1", [id]);
    },
    () => ask('PATCH', `feature_flags/${id}/`, { tags: ['ours'] }),
  );
  expect([answer.statusCode, answer.json()]).toEqual([
    200,
    expect.objectContaining({ name: 'theirs', tags: ['ours'], version: 3 }),
  ]);
});

test('a circle is seen that somebody in another process closes meanwhile', async () => {
  const made = async (key: string) =>
    (await ask('POST', 'feature_flags/', { key, filters: EVERYBODY })).json().id as number;
  const on = (id: number) =>
    where({ key: String(id), type: 'flag', operator: 'flag_evaluates_to', value: true });
  const [a, b] = [await made('circle-a'), await made('circle-b')];
  const answer = await whileOpen(
    async (query) => {
      await query('select pg_advisory_xact_lock($1, $2)', [LOCK_KINDS.flagsOfProject, anna.projectId]);
      await query('update feature_flags set filters = $2, version = version + 1 where id = $1', [b, on(a)]);
    },
    () => ask('PATCH', `feature_flags/${a}/`, { filters: on(b) }),
  );
  expect([answer.statusCode, answer.json().detail]).toEqual([
    400,
    'Circular dependency detected: circle-a → circle-b → circle-a',
  ]);
});

test('a cohort is not deleted while a flag comes to name it', async () => {
  const id = await cohort('Wanted');
  const answer = await whileOpen(
    async (query) => {
      await query('select id from cohorts where id = $1 for share', [id]);
      await query("insert into feature_flags (project_id, key, filters) values ($1, 'names', $2)", [
        anna.projectId,
        JSON.stringify(naming(id)),
      ]);
    },
    () => ask('PATCH', `cohorts/${id}/`, { deleted: true }),
  );
  expect([answer.statusCode, answer.json().detail]).toEqual([
    400,
    'This cohort is used in 1 active feature flag(s): names. Please remove the cohort from these feature flags before deleting it.',
  ]);
});

test('a flag does not come to name a cohort that is being deleted', async () => {
  const id = await cohort('Leaving');
  const answer = await whileOpen(
    (query) => query('update cohorts set deleted = true where id = $1', [id]),
    () => ask('POST', 'feature_flags/', { key: 'late', filters: naming(id) }),
  );
  expect([answer.statusCode, answer.json().code]).toEqual([400, 'cohort_does_not_exist']);
});

test('patterns are read before the lock is taken', async () => {
  const { id } = (await ask('POST', 'feature_flags/', { key: 'unlocked', filters: EVERYBODY })).json();
  const client = await api.pool.connect();
  try {
    await client.query('begin');
    await client.query('select pg_advisory_xact_lock($1, $2)', [LOCK_KINDS.flagsOfProject, anna.projectId]);
    // A wrong change is refused although somebody holds the lock: nothing waited for it.
    const wrong = { filters: where({ key: 'a', type: 'person', operator: 'regex', value: '(' }) };
    for (const answer of [
      await ask('PATCH', `feature_flags/${id}/`, wrong),
      await ask('POST', 'feature_flags/', { key: 'wrong', ...wrong }),
    ]) {
      expect(answer.statusCode).toBe(400);
    }
    await client.query('rollback');
  } finally {
    client.release();
  }
});

describe('whoever carries a plan out', () => {
  const deps = () => ({
    ...{ pool: api.pool, keyring: api.keyring, knownCohorts, limits: { flags: 100, bytes: 1_000_000 } },
    ...{ temporal: api.schedules.flags, logger: { info: () => undefined } },
  });

  test('of a change locks the flags before the change, as whoever changes it does', async () => {
    const { id } = (await ask('POST', 'feature_flags/', { key: 'due', filters: EVERYBODY })).json();
    const { rows } = await api.pool.query(
      `insert into feature_flag_scheduled_changes (project_id, flag_id, payload, scheduled_at)
       values ($1, $2, '{"operation": "update_status", "value": false}', now()) returning id`,
      [anna.projectId, id],
    );
    const changeId = rows[0].id;
    const report = await whileOpen(
      (query) => query('select pg_advisory_xact_lock($1, $2)', [LOCK_KINDS.flagsOfProject, anna.projectId]),
      () => carryOutChange(deps(), { projectId: anna.projectId, planId: String(changeId) }),
      // In the other order, the two would wait for each other.
      (query) =>
        query('update feature_flag_scheduled_changes set payload = payload where id = $1', [changeId]),
    );
    expect(report).toMatchObject({ status: 'completed', isOver: true });
  });

  test('of a rollout locks the flags before the rollout, as whoever deletes its flag does', async () => {
    const { id } = (await ask('POST', 'feature_flags/', { key: 'rolled', filters: EVERYBODY })).json();
    const ends_at = new Date(Date.now() + 86_400_000).toISOString();
    const begun = await ask('POST', `feature_flags/${id}/rollouts/`, { to_percentage: 50, ends_at });
    const planId = begun.json().id as string;
    const report = await whileOpen(
      (query) => query('select pg_advisory_xact_lock($1, $2)', [LOCK_KINDS.flagsOfProject, anna.projectId]),
      () => stepRollout(deps(), { projectId: anna.projectId, planId }),
      (query) => query("update feature_flag_rollouts set status = 'cancelled' where id = $1", [planId]),
    );
    expect(report).toMatchObject({ status: 'cancelled', isOver: true });
  });
});

test('surveys of a project wait for each other without the connections that others need', async () => {
  const waiting = async () => {
    const { rows } = await api.pool.query(
      "select count(*)::int as count from pg_locks where locktype = 'advisory' and not granted and objid = $1",
      [anna.projectId],
    );
    return rows[0].count;
  };
  const release = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const holder = transaction(api.pool, async (client) => {
    await lockFlags(client, anna.projectId);
    locked.resolve();
    await release.promise;
  });
  await locked.promise;
  const made = Array.from({ length: 6 }, (_, n) =>
    ask('POST', 'surveys/', { name: `s${n}`, type: 'popover' }),
  );
  await eventually(async () => (await waiting()) > 0);
  // Requests that came later have been answered, so all of these have begun.
  for (let times = 0; times < 20; times += 1) await ask('PATCH', 'surveys/', {});
  expect(await waiting()).toBe(1);
  release.resolve();
  await holder;
  expect((await Promise.all(made)).map((one) => one.statusCode)).toEqual(Array(6).fill(201));
});

test('a rollout is cancelled in the moment in which its flag is deleted', async () => {
  const { id } = (await ask('POST', 'feature_flags/', { key: 'goes', filters: EVERYBODY })).json();
  const ends_at = new Date(Date.now() + 86_400_000).toISOString();
  const begun = await ask('POST', `feature_flags/${id}/rollouts/`, { to_percentage: 50, ends_at });
  expect((await ask('PATCH', `feature_flags/${id}/`, { deleted: true })).statusCode).toBe(200);
  const { rows } = await api.pool.query('select status, reason from feature_flag_rollouts where id = $1', [
    begun.json().id,
  ]);
  expect(rows).toEqual([{ status: 'cancelled', reason: 'The flag was deleted.' }]);
});

test('a scheduled change does not move to another flag', async () => {
  const made = async (key: string) =>
    (await ask('POST', 'feature_flags/', { key, filters: EVERYBODY })).json().id as number;
  const [id, other] = [await made('moves'), await made('another')];
  const planned = await ask('POST', 'scheduled_changes/', {
    ...{ record_id: id, model_name: 'FeatureFlag', scheduled_at: '2090-01-01T00:00:00Z' },
    payload: { operation: 'update_status', value: false },
  });
  const refused = await ask('PATCH', `scheduled_changes/${planned.json().id}/`, { record_id: other });
  expect([refused.statusCode, refused.json().attr]).toEqual([400, 'record_id']);
});

test('rolling back takes away what the version did not have', async () => {
  const { id } = (await ask('POST', 'feature_flags/', { key: 'back', filters: EVERYBODY })).json();
  const multivariate = { variants: [{ key: 'a', rollout_percentage: 100 }] };
  await ask('PATCH', `feature_flags/${id}/`, { filters: { multivariate, payloads: { a: '1' } } });
  const back = await ask('POST', `feature_flags/${id}/roll_back/`, { version: 1 });
  expect([back.statusCode, back.json().filters.multivariate ?? null]).toEqual([200, null]);
});
