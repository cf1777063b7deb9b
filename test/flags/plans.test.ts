import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { planWorkflowId } from '../../schedules/flags/flag-schedules.ts';
import { searchAttributes } from '../../workflows/names.ts';
import type { Tenant } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { connectTo } from '../support/temporal.ts';
import { apiAndWorkerForFile } from '../support/worker.ts';
import { EVERYBODY, storeFlag, where } from './support.ts';

// Hooks run in the order of their definition: this one before the namespace goes.
let client: Client;
afterAll(() => client?.connection.close());
const world = apiAndWorkerForFile();
const { api } = world;
let anna: Tenant;
let bert: Tenant;

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  bert = await api.createTenant('Bert');
  const { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace } = api.config;
  client = await connectTo({ address: address as string, namespace });
});

const at = (rest: string, tenant = anna) => `/api/projects/${tenant.projectId}/${rest}`;
async function ask(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', rest: string, body?: object, tenant = anna) {
  const answer = await api.request(tenant, method, at(rest, tenant), body);
  return { status: answer.statusCode, body: answer.body === '' ? null : answer.json() };
}
let flags = 0;
async function flag(fields: object = { filters: EVERYBODY }, tenant = anna): Promise<number> {
  flags += 1;
  const made = await ask('POST', 'feature_flags/', { key: `flag-${flags}`, ...fields }, tenant);
  expect(made.status).toBe(201);
  return made.body.id;
}
const soon = (milliseconds: number) => new Date(Date.now() + milliseconds).toISOString();
const LATER = () => soon(86_400_000);
const plan = (id: number, operation: string, value: unknown, scheduledAt = LATER()) =>
  ask('POST', 'scheduled_changes/', {
    ...{ record_id: String(id), model_name: 'FeatureFlag', payload: { operation, value } },
    scheduled_at: scheduledAt,
  });
const change = async (id: number) => (await ask('GET', `scheduled_changes/${id}/`)).body;
const tried = (id: number) =>
  eventually(async () => {
    const found = await change(id);
    return found.executed_at === null ? undefined : found;
  });
const stored = async (id: number) => (await ask('GET', `feature_flags/${id}/`)).body;
/** Runs maintenance now. */
const mend = () => api.schedules.nudgeMaintenance();

describe('a scheduled change', () => {
  test('is planned, shown in Temporal, and carried out once at its time in the name of who planned it', async () => {
    const id = await flag({ filters: EVERYBODY, active: false });
    const planned = await plan(id, 'update_status', true, soon(1_500));
    expect(planned).toMatchObject({
      status: 201,
      body: {
        ...{ team_id: anna.projectId, record_id: String(id), model_name: 'FeatureFlag' },
        ...{ executed_at: null, failure_reason: null, created_by: { email: anna.email } },
        payload: { operation: 'update_status', value: true },
      },
    });
    const handle = client.workflow.getHandle(
      planWorkflowId({ kind: 'change', planId: String(planned.body.id) }),
    );
    const described = await handle.describe();
    expect(described.type).toBe('flagChange');
    expect(described.typedSearchAttributes.get(searchAttributes.kind)).toBe('flag-change');
    expect(described.typedSearchAttributes.get(searchAttributes.project)).toBe(anna.projectId);
    expect((await stored(id)).active).toBe(false);
    const done = await tried(planned.body.id);
    expect(done.failure_reason).toBeNull();
    expect(Date.parse(done.executed_at)).toBeGreaterThanOrEqual(Date.parse(planned.body.scheduled_at));
    expect(await stored(id)).toMatchObject({
      ...{ active: true, version: 2, last_modified_by: { email: anna.email } },
    });
    expect(await handle.result()).toMatchObject({ status: 'completed', isOver: true });
    const { rows } = await api.pool.query(
      `select actor, user_id, personal_api_key_id is not null as has_key, detail from activity_log
       where scope = 'FeatureFlag' and item_id = $1 and detail::jsonb ? 'trigger'`,
      [String(id)],
    );
    expect(rows).toMatchObject([
      {
        ...{ actor: 'user', user_id: anna.userId, has_key: true },
        detail: { trigger: { job_type: 'scheduled_change', job_id: String(planned.body.id) } },
      },
    ]);
    const again = await ask('PATCH', `scheduled_changes/${planned.body.id}/`, { scheduled_at: LATER() });
    expect(again.body.detail).toBe('The change has already executed. Schedule a new one.');
  });

  test('adds condition sets and replaces variants, as the flag is then', async () => {
    const id = await flag();
    const groups = [{ properties: [], rollout_percentage: 5 }];
    const added = await plan(id, 'add_release_condition', { groups }, soon(1_000));
    const variants = [
      { key: 'a', rollout_percentage: 40 },
      { key: 'b', rollout_percentage: 60 },
    ];
    const varied = await plan(id, 'update_variants', { variants, payloads: { a: '1' } }, soon(1_000));
    await ask('PATCH', `feature_flags/${id}/`, {
      filters: { groups: [{ properties: [], rollout_percentage: 50 }] },
    });
    expect((await tried(added.body.id)).failure_reason).toBeNull();
    expect((await tried(varied.body.id)).failure_reason).toBeNull();
    expect((await stored(id)).filters).toMatchObject({
      groups: [{ rollout_percentage: 50 }, { rollout_percentage: 5 }],
      multivariate: { variants },
      payloads: { a: '1' },
    });
    const list = await ask('GET', `scheduled_changes/?model_name=FeatureFlag&record_id=${id}`);
    expect(list.body.count).toBe(2);
    expect((await ask('GET', `scheduled_changes/?record_id=${id + 1_000}`)).body.count).toBe(0);
  });

  test('says why when it cannot be carried out, and is not tried again', async () => {
    const deleted = await flag();
    const other = await flag({ filters: EVERYBODY });
    const dependent = await flag({
      filters: where({ type: 'flag', key: String(other), operator: 'flag_evaluates_to', value: true }),
    });
    const first = await plan(deleted, 'update_status', false, soon(800));
    const second = await plan(other, 'update_status', false, soon(800));
    await ask('PATCH', `feature_flags/${deleted}/`, { deleted: true });
    expect((await tried(first.body.id)).failure_reason).toBe('The flag was deleted.');
    expect((await tried(second.body.id)).failure_reason).toContain(`(ID: ${dependent})`);
    expect(await stored(other)).toMatchObject({ active: true, version: 1 });
    await ask('PATCH', `feature_flags/${dependent}/`, { deleted: true });
    await api.schedules.flags.stir({
      ...{ kind: 'change', projectId: anna.projectId, planId: String(second.body.id), flagId: other },
    });
    const handle = client.workflow.getHandle(
      planWorkflowId({ kind: 'change', planId: String(second.body.id) }),
    );
    expect(await handle.result()).toMatchObject({ status: 'failed' });
    expect((await stored(other)).active).toBe(true);
  });

  test('can be moved and deleted while it is to come', async () => {
    const id = await flag();
    const { body: planned } = await plan(id, 'update_status', false);
    const moved = await ask('PATCH', `scheduled_changes/${planned.id}/`, { scheduled_at: soon(500) });
    expect(moved.body.payload).toEqual({ operation: 'update_status', value: false });
    await tried(planned.id);
    expect((await stored(id)).active).toBe(false);
    const { body: gone } = await plan(id, 'update_status', true);
    const handle = client.workflow.getHandle(planWorkflowId({ kind: 'change', planId: String(gone.id) }));
    expect((await ask('DELETE', `scheduled_changes/${gone.id}/`)).status).toBe(204);
    expect(await handle.result()).toMatchObject({ status: 'deleted' });
    expect((await ask('GET', `scheduled_changes/${gone.id}/`)).status).toBe(404);
    expect((await stored(id)).active).toBe(false);
  });

  test('does not wait for all those of another project that are due at the same time', async () => {
    const [id, theirs] = [await flag(), await flag(undefined, bert)];
    const insert = (tenant: Tenant, flagId: number, count: number, ago: string) =>
      api.pool.query(
        `insert into feature_flag_scheduled_changes (project_id, flag_id, payload, scheduled_at)
         select $1, $2, json_build_object('operation', 'update_status', 'value', n % 2 = 0),
           clock_timestamp() - $4::interval from generate_series(1, $3) n`,
        [tenant.projectId, flagId, count, ago],
      );
    // Temporal is asked for the other one's last of all.
    await insert(anna, id, 150, '2 minutes');
    await insert(bert, theirs, 1, '1 minute');
    mend();
    const executed = async (flagId: number) => {
      const { rows } = await api.pool.query(
        `select executed_at, failure_reason from feature_flag_scheduled_changes where flag_id = $1 and executed_at is not null`,
        [flagId],
      );
      return rows as { executed_at: Date; failure_reason: string | null }[];
    };
    await eventually(async () => (await executed(id)).length === 150);
    const all = await executed(id);
    expect(all.filter((one) => one.failure_reason !== null)).toEqual([]);
    const [their] = await executed(theirs);
    const before = all.filter(
      (one) => new Date(one.executed_at) < new Date((their as { executed_at: Date }).executed_at),
    );
    expect(before.length).toBeLessThan(15);
    expect((await stored(id)).version).toBe(151);
  });

  test('whose workflow is cancelled in Temporal is given up', async () => {
    const id = await flag();
    const { body: planned } = await plan(id, 'update_status', false);
    await client.workflow.getHandle(planWorkflowId({ kind: 'change', planId: String(planned.id) })).cancel();
    expect((await tried(planned.id)).failure_reason).toBe('Its workflow was cancelled in Temporal.');
  });

  test('is carried out late if Temporal did not hear of it, lost it, or no worker ran; and once', async () => {
    const ids = [await flag(), await flag(), await flag()];
    const insert = (id: number, time: string) =>
      api.pool.query(
        `insert into feature_flag_scheduled_changes (project_id, flag_id, payload, scheduled_at, created_by, key_id)
         values ($1, $2, '{"operation":"update_status","value":false}', $3, null, null) returning id`,
        [anna.projectId, id, time],
      );
    // Temporal was away when it was planned.
    const unheard = (await insert(ids[0] as number, soon(-120_000))).rows[0].id;
    // Temporal lost it.
    const { body: lost } = await plan(ids[1] as number, 'update_status', false);
    await client.workflow
      .getHandle(planWorkflowId({ kind: 'change', planId: String(lost.id) }))
      .terminate('lost');
    await api.pool.query(
      'update feature_flag_scheduled_changes set scheduled_at = $2, is_told = true where id = $1',
      [lost.id, soon(-60_000)],
    );
    // Nothing else is due, so nobody comes past who would carry them out too.
    mend();
    for (const id of [unheard, lost.id]) expect((await tried(id)).failure_reason).toBeNull();
    // Nobody worked when it was due.
    const { body: waits } = await plan(ids[2] as number, 'update_status', false, soon(2_000));
    await world.stopWorker();
    await eventually(async () => Date.now() > Date.parse(waits.scheduled_at));
    expect((await change(waits.id)).executed_at).toBeNull();
    await world.startWorker();
    for (const [index, planned] of [unheard, lost.id, waits.id].entries()) {
      expect((await tried(planned)).failure_reason).toBeNull();
      expect(await stored(ids[index] as number)).toMatchObject({ active: false, version: 2 });
    }
    const log = await api.pool.query(
      "select actor from activity_log where item_id = $1 and detail::jsonb ? 'trigger'",
      [String(ids[0])],
    );
    expect(log.rows).toEqual([{ actor: 'system' }]);
  });

  test.each([
    ['update_status', 'yes', 'payload', 'The value of update_status must be true or false.'],
    ['add_release_condition', { groups: [] }, 'payload', 'at least one condition set'],
    ['add_release_condition', { groups: [{ rollout_percentage: 101 }] }, 'filters', 'between 0 and 100'],
    ['update_variants', { variants: [] }, 'filters', 'must not be empty'],
    ['delete', true, 'payload__operation', '"delete" is not a valid choice.'],
  ])('%s with %j is refused at once', async (operation, value, attr, text) => {
    const refused = await plan(await flag(), operation, value);
    expect([refused.status, refused.body.attr]).toEqual([400, attr]);
    expect(refused.body.detail).toContain(text);
  });

  test('whose time is past happens at once', async () => {
    const id = await flag({ filters: EVERYBODY });
    const planned = await plan(id, 'update_status', false, '2023-12-08T12:00:00Z');
    expect(planned).toMatchObject({ status: 201, body: { scheduled_at: '2023-12-08T12:00:00Z' } });
    expect((await tried(planned.body.id)).failure_reason).toBeNull();
    expect((await stored(id)).active).toBe(false);
  });

  test('needs a flag of the project, and the model of flags', async () => {
    const id = await flag();
    const theirs = await flag({ filters: EVERYBODY }, bert);
    expect((await plan(theirs, 'update_status', true)).body).toMatchObject({
      ...{ attr: 'record_id', detail: 'Feature flag not found' },
    });
    const payload = { operation: 'update_status', value: true };
    const body = { record_id: id, model_name: 'Survey', payload, scheduled_at: LATER() };
    expect((await ask('POST', 'scheduled_changes/', body)).body.detail).toBe(
      '"Survey" is not a valid choice.',
    );
    const planned = await plan(id, 'update_status', false);
    expect((await ask('GET', `scheduled_changes/${planned.body.id}/`, undefined, bert)).status).toBe(404);
  });
});

describe('a gradual rollout', () => {
  const rollout = (id: number, fields: object) => ask('POST', `feature_flags/${id}/rollouts/`, fields);
  const shown = async (id: number, rolloutId: string) =>
    (await ask('GET', `feature_flags/${id}/rollouts/${rolloutId}/`)).body;
  const until = (id: number, rolloutId: string, status: string) =>
    eventually(async () => {
      const found = await shown(id, rolloutId);
      return found.status === status ? found : undefined;
    });
  const steer = (id: number, rolloutId: string, step: string) =>
    ask('POST', `feature_flags/${id}/rollouts/${rolloutId}/${step}/`);
  /** The percentages that a flag has had, by its versions. */
  async function percentages(id: number, place = 0): Promise<number[]> {
    const { rows } = await api.pool.query(
      'select document from feature_flag_revisions where flag_id = $1 order by version',
      [id],
    );
    return rows.map((row) => row.document.filters.groups[place].rollout_percentage);
  }
  const at10 = { filters: { groups: [{ properties: [], rollout_percentage: 10 }] } };

  test('goes from one percentage to the other in steps, each taken once', async () => {
    const id = await flag(at10);
    const begun = await rollout(id, { to_percentage: 50, steps: 4, ends_at: soon(2_000) });
    expect(begun).toMatchObject({
      status: 201,
      body: { status: 'running', from_percentage: 10, percentage: 10, steps: 4, steps_done: 0 },
    });
    const handle = client.workflow.getHandle(planWorkflowId({ kind: 'rollout', planId: begun.body.id }));
    const described = await handle.describe();
    expect(described.type).toBe('flagRollout');
    expect(described.typedSearchAttributes.get(searchAttributes.kind)).toBe('flag-rollout');
    expect((await rollout(id, { to_percentage: 60, ends_at: soon(2_000) })).status).toBe(409);
    const ended = await until(id, begun.body.id, 'completed');
    expect(ended).toMatchObject({ percentage: 50, steps_done: 4, next_step_at: null, reason: null });
    // A slow machine may leave steps out, never take one twice or out of order.
    const seen = await percentages(id);
    expect([seen.at(0), seen.at(-1)]).toEqual([10, 50]);
    expect(seen).toEqual([...new Set(seen)].sort((a, b) => a - b));
    for (const one of seen) expect([10, 20, 30, 40, 50]).toContain(one);
    expect(await handle.result()).toMatchObject({ status: 'completed', percentage: 50 });
    expect((await ask('GET', `feature_flags/${id}/rollouts/`)).body.results).toEqual([ended]);
    const { rows } = await api.pool.query(
      "select user_id, detail from activity_log where item_id = $1 and detail::jsonb ? 'trigger'",
      [String(id)],
    );
    expect(rows).toHaveLength(seen.length - 1);
    expect(rows[0]).toMatchObject({ user_id: anna.userId, detail: { trigger: { job_type: 'rollout' } } });
  });

  test('is paused, resumed and cancelled; a pause moves what is ahead', async () => {
    const id = await flag(at10);
    const { body: begun } = await rollout(id, { to_percentage: 20, steps: 1, ends_at: LATER() });
    const paused = await steer(id, begun.id, 'pause');
    expect(paused.body).toMatchObject({ status: 'paused', next_step_at: null });
    expect((await steer(id, begun.id, 'pause')).body.detail).toBe(
      'Cannot pause a rollout that is not running.',
    );
    await api.pool.query(
      "update feature_flag_rollouts set paused_at = paused_at - interval '1 hour' where id = $1",
      [begun.id],
    );
    const resumed = (await steer(id, begun.id, 'resume')).body;
    expect(resumed.status).toBe('running');
    const moved = Date.parse(resumed.ends_at) - Date.parse(begun.ends_at);
    expect(moved).toBeGreaterThanOrEqual(3_600_000);
    const cancelled = await steer(id, begun.id, 'cancel');
    expect(cancelled.body).toMatchObject({ status: 'cancelled', reason: 'Cancelled by a user.' });
    const handle = client.workflow.getHandle(planWorkflowId({ kind: 'rollout', planId: begun.id }));
    expect(await handle.result()).toMatchObject({ status: 'cancelled' });
    expect((await steer(id, begun.id, 'resume')).status).toBe(400);
    expect(await percentages(id)).toEqual([10]);
    const { rows } = await api.pool.query(
      "select activity from activity_log where item_id = $1 and activity <> 'created' order by id",
      [String(id)],
    );
    expect(rows.map((row) => row.activity)).toEqual(['started', 'paused', 'resumed', 'cancelled']);
  });

  /** Starts a rollout whose next step is far, changes the flag, and makes the next step due. */
  async function meanwhile(edit: object, given: object = at10) {
    const id = await flag(given);
    const { body: begun } = await rollout(id, {
      ...{ to_percentage: 50, steps: 2, starts_at: soon(86_400_000), ends_at: soon(2 * 86_400_000) },
    });
    expect((await ask('PATCH', `feature_flags/${id}/`, edit)).status).toBe(200);
    await api.pool.query(
      `update feature_flag_rollouts set starts_at = clock_timestamp() - interval '1 minute',
         ends_at = clock_timestamp() + interval '1 hour', due_at = clock_timestamp() - interval '1 minute' where id = $1`,
      [begun.id],
    );
    await api.schedules.flags.stir({
      ...{ kind: 'rollout', projectId: anna.projectId, planId: begun.id, flagId: id },
    });
    return { id, begun };
  }

  test('a percentage that somebody sets by hand stands: the rollout ends', async () => {
    const edit = { filters: { groups: [{ properties: [], rollout_percentage: 0 }] } };
    const { id, begun } = await meanwhile(edit);
    expect((await until(id, begun.id, 'ended')).reason).toBe(
      'Somebody set the percentage to 0. The rollout had left it at 10.',
    );
    expect(await percentages(id)).toEqual([10, 0]);
  });

  test('a condition set that somebody changes ends the rollout', async () => {
    const email = { key: 'email', type: 'person', operator: 'icontains', value: '@acme' };
    const edit = { filters: { groups: [{ properties: [email], rollout_percentage: 10 }] } };
    const { id, begun } = await meanwhile(edit);
    expect((await until(id, begun.id, 'ended')).reason).toBe(
      'Somebody changed or removed the condition set.',
    );
  });

  test('changes of everything else do not matter, also when the condition set moves', async () => {
    const other = { properties: [], rollout_percentage: 3, variant: null };
    const mine = { properties: [], rollout_percentage: 10 };
    const edit = { name: 'renamed', filters: { groups: [other, mine] } };
    const { id, begun } = await meanwhile(edit, { filters: { groups: [mine] } });
    await eventually(async () => (await shown(id, begun.id)).steps_done === 0);
    await api.pool.query(
      `update feature_flag_rollouts set starts_at = clock_timestamp() - interval '2 hours',
         ends_at = clock_timestamp() - interval '1 minute' where id = $1`,
      [begun.id],
    );
    await api.schedules.flags.stir({
      ...{ kind: 'rollout', projectId: anna.projectId, planId: begun.id, flagId: id },
    });
    await until(id, begun.id, 'completed');
    expect(
      (await stored(id)).filters.groups.map((one: { rollout_percentage: number }) => one.rollout_percentage),
    ).toEqual([3, 50]);
  });

  test('a flag that is disabled pauses the rollout, and a deleted one cancels it', async () => {
    const { id, begun } = await meanwhile({ active: false });
    expect((await until(id, begun.id, 'paused')).reason).toContain('The flag is disabled.');
    expect((await steer(id, begun.id, 'resume')).body.detail).toContain('The flag is disabled.');
    await ask('PATCH', `feature_flags/${id}/`, { active: true });
    expect((await steer(id, begun.id, 'resume')).body.status).toBe('running');
    const deleted = await meanwhile({ deleted: true });
    const ended = await eventually(async () => {
      const { rows } = await api.pool.query(
        'select status, reason from feature_flag_rollouts where id = $1',
        [deleted.begun.id],
      );
      return rows[0].status === 'cancelled' ? rows[0] : undefined;
    });
    expect(ended.reason).toBe('The flag was deleted.');
  });

  test('goes on late where it was after Temporal lost it, and leaves out what has passed', async () => {
    const id = await storeFlag(api.pool, anna.projectId, {
      key: 'by-an-earlier-version',
      filters: { groups: [{ properties: [], rollout_percentage: 10 }] },
    });
    const { body: begun } = await rollout(id, { to_percentage: 30, steps: 2, ends_at: LATER() });
    const handle = client.workflow.getHandle(planWorkflowId({ kind: 'rollout', planId: begun.id }));
    await eventually(async () => (await shown(id, begun.id)).updated_at !== begun.updated_at);
    await handle.terminate('lost');
    await api.pool.query(
      `update feature_flag_rollouts set starts_at = starts_at - interval '2 days', ends_at = ends_at - interval '2 days',
         due_at = due_at - interval '2 days' where id = $1`,
      [begun.id],
    );
    mend();
    expect(await until(id, begun.id, 'completed')).toMatchObject({ percentage: 30, steps_done: 2 });
    expect(await percentages(id)).toEqual([10, 30]);
  });

  test('is refused with a sentence', async () => {
    const id = await flag(at10);
    const cases = [
      [{ to_percentage: 20, ends_at: soon(-1) }, 'ends_at', 'The end must be in the future'],
      [{ to_percentage: 10, ends_at: LATER() }, 'to_percentage', 'The condition set is at 10 % already.'],
      [{ to_percentage: 101, ends_at: LATER() }, 'to_percentage', '100'],
      [{ to_percentage: 20, ends_at: soon(400 * 86_400_000) }, 'ends_at', '366 days at most'],
      [{ to_percentage: 20, ends_at: LATER(), condition_index: 1 }, 'condition_index', 'There is no 1.'],
    ] as const;
    for (const [body, attr, text] of cases) {
      const refused = await rollout(id, body);
      expect([refused.status, refused.body.attr]).toEqual([400, attr]);
      expect(refused.body.detail).toContain(text);
    }
    const off = await flag({ ...at10, active: false });
    expect((await rollout(off, { to_percentage: 20, ends_at: LATER() })).body.detail).toContain('disabled');
    const { body: begun } = await rollout(id, { to_percentage: 20, ends_at: LATER() });
    expect((await ask('GET', `feature_flags/${id}/rollouts/${begun.id}/`, undefined, bert)).status).toBe(404);
    expect((await ask('GET', `feature_flags/${off}/rollouts/${begun.id}/`)).status).toBe(404);
  });

  test('whose workflow is cancelled in Temporal is cancelled', async () => {
    const id = await flag(at10);
    const { body: begun } = await rollout(id, { to_percentage: 20, ends_at: LATER() });
    await client.workflow.getHandle(planWorkflowId({ kind: 'rollout', planId: begun.id })).cancel();
    expect((await until(id, begun.id, 'cancelled')).reason).toBe('Its workflow was cancelled in Temporal.');
  });
});
