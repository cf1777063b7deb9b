import { beforeAll, describe, expect, test } from '@jest/globals';
import { ensureHistoryPartitions } from '../../../functions/rows/upkeep.ts';
import { cancelWaiting, keepHistory } from '../../../functions/runs/upkeep.ts';
import type { Tenant } from '../../support/api.ts';
import { runtimeForFile, sender } from './world.ts';

const world = runtimeForFile();
const work = { signal: new AbortController().signal, beat: () => undefined };
let id: string;
let bob: Tenant;
let fails = true;
const ask = async (method: string, path: string, body?: object, tenant = world.anna) => {
  const url = `/api/projects/${world.anna.projectId}/hog_functions/${id}/${path}`;
  const answer = await world.api.request(tenant, method, url, body);
  return { status: answer.statusCode, body: answer.body === '' ? null : answer.json() };
};
const list = async (query = '') => (await ask('GET', `invocations/${query}`)).body.results;
const arrivedIds = () => world.arrivals.map(({ body }) => JSON.parse(body).id).sort();

beforeAll(async () => {
  bob = await world.api.createTenant('Bob');
  world.answer((_arrival, response) => {
    response.statusCode = fails ? 400 : 200;
    response.end('{"reason":"no such list"}');
  });
  id = await world.create(
    sender(world.url(), {
      filters: { events: [{ id: 'paid', type: 'events' }] },
      hog: "let res := fetch(inputs.url, {'body': inputs.body, 'headers': {'x-key': inputs.key}}); if (res.status != 200) { throw Error(f'The list said {res.status}') }",
      inputs_schema: [
        { key: 'url', type: 'string', required: true },
        { key: 'body', type: 'json' },
        { key: 'key', type: 'string', secret: true },
      ],
      inputs: {
        url: { value: world.url() },
        key: { value: 'very secret key' },
        body: { value: { id: '{event.properties.id}', key: '{inputs.key}' } },
      },
    }),
  );
  await world.capture(
    [1, 2, 3, 4, 5].map((number) => ({
      ...{ uuid: `${number}1111111-1111-1111-1111-111111111111`, event: 'paid' },
      distinct_id: `user ${number}`,
      properties: { id: number },
    })),
  );
  await world.idle();
});

describe('what has failed', () => {
  test('is listed with its attempts, newest first, page by page, without secrets', async () => {
    const { status, body } = await ask('GET', 'invocations/?status=failed&limit=2');
    expect(status).toBe(200);
    expect(body.results).toHaveLength(2);
    expect(body.results[0]).toMatchObject({
      ...{ status: 'failed', version: 1, mapping: null, next_attempt_at: null, rerun_at: null },
      error: expect.stringContaining('The list said 400'),
      attempts: [
        {
          step: 0,
          attempt: 1,
          method: 'POST',
          url: world.url(),
          status: 400,
          response_body: '{"reason":"no such list"}',
        },
      ],
    });
    expect(JSON.stringify(body)).not.toContain('very secret');
    expect(body.results[0].attempts[0].request_body).toContain('***REDACTED***');
    const seen = new Set(body.results.map((one: { id: string }) => one.id));
    let { next } = body;
    while (next) {
      const page = (
        await world.api.request(world.anna, 'GET', new URL(next).pathname + new URL(next).search)
      ).json();
      for (const one of page.results) seen.add(one.id);
      next = page.next;
    }
    expect(seen.size).toBe(5);
  });

  test('is found by its event, its person and its error, and shown alone', async () => {
    expect(await list('?distinct_id=user%203')).toMatchObject([{ distinct_id: 'user 3' }]);
    expect(await list('?search=THE+LIST+said')).toHaveLength(5);
    expect(await list('?search=100%25')).toHaveLength(0);
    // In what was answered, in what was sent, and never in what is hidden.
    expect(await list('?search="NO+SUCH+list"')).toHaveLength(5);
    expect(await list('?search={"id":4,')).toMatchObject([{ distinct_id: 'user 4' }]);
    expect(await list('?search=very+secret')).toHaveLength(0);
    const [one] = await list('?limit=1');
    expect(await list(`?event_id=${one.event_id}`)).toMatchObject([{ id: one.id }]);
    expect((await ask('GET', `invocations/${one.id}/`)).body).toEqual(one);
    expect((await ask('GET', `invocations/${bob.userUuid}/`)).status).toBe(404);
    expect((await ask('GET', 'invocations/', undefined, bob)).status).toBe(404);
    expect((await ask('GET', 'invocations/?status=unknown')).body.attr).toBe('status');
  });

  test('can be dismissed', async () => {
    const [one] = await list('?distinct_id=user%205');
    expect((await ask('POST', 'invocations/dismiss/', {})).body).toMatchObject({
      attr: 'invocation_ids',
      code: 'required',
    });
    const dismiss = async () =>
      (await ask('POST', 'invocations/dismiss/', { invocation_ids: [one.id] })).body;
    expect(await dismiss()).toEqual({ dismissed_count: 1, has_more: false, looked_at_before: null });
    expect(await dismiss()).toEqual({ dismissed_count: 0, has_more: false, looked_at_before: null });
    expect(await list('?open=true')).toHaveLength(4);
    expect(await list('?status=failed')).toHaveLength(5);
  });

  test('can be run again, once', async () => {
    fails = false;
    world.arrivals.length = 0;
    const [one] = await list('?distinct_id=user%201');
    const unknown = one.event_id;
    const first = await ask('POST', 'rerun/', { invocation_ids: [one.id, unknown] });
    expect(first).toEqual({
      status: 200,
      body: { queued_count: 1, skipped_count: 1, rerun_job_id: null, rerun: null },
    });
    await world.idle();
    expect(arrivedIds()).toEqual([1]);
    const again = await ask('POST', 'rerun/', { invocation_ids: [one.id] });
    expect(again.body).toEqual({ queued_count: 0, skipped_count: 1, rerun_job_id: null, rerun: null });
    const ids = (await list('?status=failed')).map((row: { id: string }) => row.id);
    const all = await ask('POST', 'rerun/', { invocation_ids: ids, status: 'failed' });
    expect(all.body).toEqual({ queued_count: 4, skipped_count: 1, rerun_job_id: null, rerun: null });
    const both = await ask('POST', 'rerun/', { invocation_ids: ids, search: 'list' });
    expect(both).toMatchObject({ status: 400, body: { attr: 'invocation_ids' } });
    await world.idle();
    expect(arrivedIds()).toEqual([1, 2, 3, 4, 5]);
    expect(await list('?open=true')).toHaveLength(0);
    const succeeded = await list('?status=succeeded');
    expect(succeeded).toHaveLength(5);
    expect(succeeded.map((row: { rerun_of: string }) => row.rerun_of)).toContain(one.id);
    const { rows } = await world.api.pool.query(
      "select detail->>'count' as count from activity_log where item_id = $1 and activity = 'rerun' order by id",
      [id],
    );
    expect(rows.map((row) => row.count)).toEqual(['1', '4']);
  });

  test('runs in the version that is chosen', async () => {
    await world.change(id, {
      inputs: { url: { value: world.url('second') }, key: { secret: true }, body: { value: { id: 0 } } },
    });
    world.arrivals.length = 0;
    const [one] = await list('?status=succeeded&limit=1');
    for (const [version, path] of [
      ['original', ''],
      ['current', 'second'],
      [1, ''],
    ] as const) {
      await world.api.pool.query('update function_invocations set rerun_at = null where id = $1', [one.id]);
      const answer = await ask('POST', 'rerun/', { invocation_ids: [one.id], version });
      expect(answer.body.queued_count).toBe(1);
      await world.idle();
      expect(world.arrivals.at(-1)?.path).toBe(path);
    }
    const unknown = await ask('POST', 'rerun/', { invocation_ids: [one.id], version: 77 });
    expect(unknown.body).toMatchObject({
      attr: 'version',
      detail: 'Version 77 of the function is not kept.',
    });
    await world.change(id, { enabled: false });
    expect((await ask('POST', 'rerun/', { invocation_ids: [one.id] })).body.detail).toMatch(
      /^The function is disabled/,
    );
    await world.change(id, { enabled: true });
  });
});

describe('what waits', () => {
  const wait = (number: number, more = '') =>
    world.api.pool.query(
      `insert into function_queue (id, project_id, function_id, version, distinct_id, globals, clock, seed, due_at, lease)
       select gen_random_uuid(), $1, $2, 1, 'waiter ' || n, '{}', now(), 1, clock_timestamp() + interval '1 day',
         ${more || 'null'} from generate_series(1, $3) n`,
      [world.anna.projectId, id, number],
    );
  const cancel = async (body: object) => (await ask('POST', 'invocations/cancel/', body)).body;

  test('can be cancelled, but for what is in progress', async () => {
    await wait(3);
    await wait(1, 'gen_random_uuid()');
    expect(await cancel({})).toMatchObject({ attr: 'invocation_ids', code: 'required' });
    const waiting = await list('?status=waiting');
    expect(waiting).toHaveLength(4);
    const one = waiting.find((row: { distinct_id: string }) => row.distinct_id === 'waiter 2');
    expect(await cancel({ invocation_ids: [one.id] })).toEqual({
      cancelled_count: 1,
      has_more: false,
      looked_at_before: null,
    });
    expect(await list('?status=cancelled')).toMatchObject([
      { id: one.id, distinct_id: 'waiter 2', error: 'Cancelled by a user.', attempts: [] },
    ]);
    const later = new Date(Date.now() + 2 * 86_400_000).toISOString();
    expect(await cancel({ after: later })).toEqual({
      cancelled_count: 0,
      has_more: false,
      looked_at_before: null,
    });
    expect(await cancel({ before: later })).toEqual({
      cancelled_count: 2,
      has_more: false,
      looked_at_before: null,
    });
    expect(await list('?status=waiting')).toHaveLength(1);
    expect((await ask('POST', 'invocations/cancel/', { before: later }, bob)).status).toBe(404);
    await world.api.pool.query('delete from function_queue');
  });

  test('that was cancelled lets the next of its line go on', async () => {
    await wait(2);
    await world.api.pool.query("update function_queue set line = 'ada', distinct_id = 'ada'");
    const [first] = await list('?status=waiting');
    await cancel({ invocation_ids: [first.id] });
    const { rows } = await world.api.pool.query(
      'select (select count(*)::int from function_queue where due_at > clock_timestamp()) as later',
    );
    expect(rows[0].later).toBe(0);
    await world.api.pool.query('delete from function_queue');
  });
});

describe('upkeep', () => {
  const left = async (table: string) =>
    (
      await world.api.pool.query(`select count(*)::int as count from ${table} where project_id = $1`, [
        world.anna.projectId,
      ])
    ).rows[0].count;

  test('the history goes by week, and what is old is deleted', async () => {
    const before = await left('function_invocations');
    await world.api.pool.query(
      `insert into function_invocations (project_id, id, function_id, version, status, attempts, created_at, finished_at)
       select $1, gen_random_uuid(), $2, 1, 'failed', '[]', at, at from (select clock_timestamp() - interval '40 days' as at) a`,
      [world.anna.projectId, id],
    );
    await ensureHistoryPartitions(world.api.pool, new Date(Date.now() - 40 * 86_400_000), 0);
    await ensureHistoryPartitions(world.api.pool, new Date(), 1);
    expect(await left('function_invocations_default')).toBe(0);
    expect(await left('function_invocations')).toBe(before + 1);
    await world.api.pool.query(
      "update function_logs set timestamp = timestamp - interval '31 days' where level = 'DEBUG' or level = 'debug'",
    );
    expect(await keepHistory({ pool: world.api.pool, functionDays: 30 }, work)).toBeGreaterThan(1);
    expect(await left('function_invocations')).toBe(before);
    expect((await world.logs(id)).filter(({ level }) => level === 'DEBUG')).toHaveLength(0);
    expect(await list('?limit=1')).toHaveLength(1);
  });

  test('what waits for a function that was switched off is cancelled soon, whenever it was due', async () => {
    await world.api.pool.query(
      `insert into function_queue (id, project_id, function_id, version, globals, clock, seed, due_at)
       values (gen_random_uuid(), $1, $2, 1, '{}', now(), 1, clock_timestamp() + interval '1 day')`,
      [world.anna.projectId, id],
    );
    expect(await cancelWaiting({ pool: world.api.pool, functionDays: 30 }, work)).toBe(0);
    expect(await list('?status=waiting')).toMatchObject([
      { status: 'waiting', finished_at: null, attempts: [] },
    ]);
    await world.change(id, { enabled: false });
    expect(await cancelWaiting({ pool: world.api.pool, functionDays: 30 }, work)).toBe(1);
    await world.idle();
    expect(await list('?status=cancelled&limit=1')).toMatchObject([
      { error: 'The function was switched off.' },
    ]);
  });

  test('nothing of a deleted person is left', async () => {
    const { rows } = await world.api.pool.query(
      'select person_id, id from function_invocations where project_id = $1 and distinct_id = $2',
      [world.anna.projectId, 'user 2'],
    );
    expect(rows.length).toBeGreaterThan(0);
    const path = `/api/projects/${world.anna.projectId}/persons/${rows[0].person_id}/`;
    expect((await world.api.request(world.anna, 'DELETE', path)).statusCode).toBeLessThan(300);
    expect(await list('?distinct_id=user%202')).toHaveLength(0);
    expect(await list('?distinct_id=user%203')).not.toHaveLength(0);
    const lines = await world.api.pool.query('select from function_logs where instance_id = any($1)', [
      rows.map((row) => row.id),
    ]);
    expect(lines.rowCount).toBe(0);
  });
});
