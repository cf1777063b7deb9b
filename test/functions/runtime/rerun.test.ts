import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { beginReplay, replayPages } from '../../../functions/runs/replays.ts';
import { replayWorkflowId } from '../../../schedules/functions/function-schedules.ts';
import { searchAttributes } from '../../../workflows/names.ts';
import { lockedOut } from '../../support/locked-out.ts';
import { replayWorldForFile, type Shown, unstopped } from './replay-world.ts';
import { sender } from './world.ts';

// Nothing is delivered here: what is queued stays there to be counted.
const world = replayWorldForFile({ delivers: false });
// Recent enough for maintenance to leave it alone.
const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
const [after, before] = [daysAgo(3), daysAgo(2)] as const;
let id: string;

/** Writes ended invocations into the history, one each second. */
async function end(count: number, { status = 'failed', error = 'It said 500', from = after } = {}) {
  const attempts = [
    { url: 'https://it.example', request_body: null, response_body: 'quota "Ä" exceeded', error: null },
  ];
  await world.api.pool.query(
    `insert into function_invocations (project_id, id, function_id, version, status, error, attempts, distinct_id, globals,
       created_at, finished_at)
     select $1, gen_random_uuid(), $2, 1, $3, $4 || ' ' || n, case when n % 10 = 0 then $5::json else '[]' end, 'd-' || n,
       '{}', at, at
     from (select n, $6::timestamptz + n * interval '1 second' as at from generate_series(1, $7) n) one`,
    [world.anna.projectId, id, status, error, JSON.stringify(attempts), from, count],
  );
}

const queued = async (): Promise<{ rerun_of: string; version: number }[]> =>
  (await world.api.pool.query('select rerun_of, version from function_queue order by seq')).rows;
const rerun = async (body: object): Promise<Shown> => {
  const answer = await world.ask(id, 'POST', 'rerun/', { rate_per_second: null, ...body });
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  return answer.body.rerun as Shown;
};

beforeEach(async () => {
  await world.api.pool.query(
    'truncate function_queue, function_invocations, function_replays, function_states',
  );
  id = await world.create(sender('http://127.0.0.1:9'));
});

describe('a rerun of a range', () => {
  test('takes what ended in it with a status, each once, in the order in which it ended', async () => {
    await end(2_500);
    await end(30, { status: 'cancelled' });
    await end(20, { from: before });
    await world.api.pool.query(
      `update function_invocations set dismissed_at = now() where status = 'failed' and error in ('It said 500 7', 'It said 500 8')`,
    );
    const begun = await rerun({ after, before });
    expect(begun).toMatchObject({
      kind: 'rerun',
      selection: { status: 'failed', search: null },
      version: null,
    });
    const ended = await world.until(id, begun.id, 'completed');
    expect(ended).toMatchObject({ total: 2_498, scanned: 2_498, matched: 2_498, queued: 2_498 });
    const { rows } = await world.api.pool.query(
      'select id from function_invocations where rerun_at is not null order by finished_at, id',
    );
    expect((await queued()).map((one) => one.rerun_of)).toEqual(rows.map((one) => one.id));
    expect(rows).toHaveLength(2_498);
    expect(await world.totals(id)).toMatchObject({ triggered: 2_498 });
    const again = await rerun({ after, before });
    expect(await world.until(id, again.id, 'completed')).toMatchObject({ total: 0, queued: 0 });
    const cancelled = await rerun({ before, status: 'cancelled' });
    expect(await world.until(id, cancelled.id, 'completed')).toMatchObject({ queued: 30 });
  });

  test('is a workflow that can be found, paused, resumed and cancelled', async () => {
    await end(60);
    const begun = await rerun({ after, rate_per_second: 1 });
    const handle = world.client.workflow.getHandle(replayWorkflowId({ kind: 'rerun', id: begun.id }));
    const described = await handle.describe();
    expect(described.type).toBe('functionRerun');
    expect(described.typedSearchAttributes.get(searchAttributes.kind)).toBe('function-rerun');
    expect(described.typedSearchAttributes.get(searchAttributes.function)).toBe(id);
    expect((await world.ask(id, 'POST', 'rerun/', { after })).status).toBe(409);
    for (const [step, status] of [
      ['pause', 'paused'],
      ['resume', 'running'],
      ['cancel', 'cancelled'],
    ]) {
      expect((await world.ask(id, 'POST', `replays/${begun.id}/${step}/`)).body.status).toBe(status);
    }
    expect(await handle.result()).toMatchObject({ status: 'cancelled' });
    expect((await queued()).length).toBeLessThan(60);
    const rows = (await world.ask(id, 'GET', 'replays/?kind=rerun')).body.results;
    expect(rows).toMatchObject([{ id: begun.id, reason: 'Cancelled by a user.' }]);
    const log = await world.api.pool.query(
      "select activity, detail->>'version' as version from activity_log where item_id = $1 and activity <> 'created' order by id",
      [id],
    );
    expect(log.rows.map((row) => row.activity)).toEqual(['rerun', 'paused', 'resumed', 'cancelled']);
    expect(log.rows[0].version).toBe('original');
  });

  test('goes on with a new history', async () => {
    await end(30);
    const begun = await rerun({ after, rate_per_second: 2 });
    const workflowId = replayWorkflowId({ kind: 'rerun', id: begun.id });
    await world.client.workflow.getHandle(workflowId).terminate();
    const handle = await world.client.workflow.start('functionRerun', {
      ...{ workflowId, taskQueue: world.api.config.SLUICE_TASK_QUEUE },
      args: [{ projectId: world.anna.projectId, replayId: begun.id, pagesPerHistory: 1 }],
    });
    expect(await handle.result()).toMatchObject({ status: 'completed', queued: 30 });
    expect(await queued()).toHaveLength(30);
  });

  test('searches in errors, requests and answers, and counts before it runs anything', async () => {
    await end(100);
    const counted = await rerun({ after, search: 'QUOTA "ä"', dry_run: true });
    expect(await world.until(id, counted.id, 'completed')).toMatchObject({
      ...{ dry_run: true, scanned: 100, matched: 10, queued: 10 },
    });
    expect(await queued()).toEqual([]);
    const begun = await rerun({ search: 'said 500 4' });
    expect(await world.until(id, begun.id, 'completed')).toMatchObject({
      total: 100,
      matched: 11,
      queued: 11,
    });
  });

  test('runs the version that is chosen', async () => {
    await end(3);
    await world.change(id, { hog: 'return 2' });
    const begun = await rerun({ after, version: 'current' });
    expect(begun.version).toBe(2);
    await world.until(id, begun.id, 'completed');
    expect((await queued()).map((one) => one.version)).toEqual([2, 2, 2]);
    const unknown = await world.ask(id, 'POST', 'rerun/', { after, version: 77 });
    expect(unknown).toMatchObject({ status: 400, body: { attr: 'version' } });
  });

  test('is refused without a range, with one that is empty, and while the function is disabled', async () => {
    expect((await world.ask(id, 'POST', 'rerun/', {})).body).toMatchObject({ attr: 'invocation_ids' });
    expect((await world.ask(id, 'POST', 'rerun/', { after, before: after })).body).toMatchObject({
      attr: 'before',
    });
    await world.change(id, { enabled: false });
    expect((await world.ask(id, 'POST', 'rerun/', { after })).body.detail).toMatch(
      /^The function is disabled/,
    );
    expect((await world.ask(id, 'POST', 'rerun/', { after, dry_run: true })).status).toBe(200);
  });

  test.each(['transformation', 'site_app', 'site_destination'])('is refused for a %s', async (type) => {
    const hog = type === 'transformation' ? 'return event' : 'export function onLoad() {}';
    const path = `/api/projects/${world.anna.projectId}/hog_functions/`;
    const made = await world.api.request(world.anna, 'POST', path, { type, hog, enabled: true });
    for (const body of [{ after, dry_run: true }, { invocation_ids: [randomUUID()] }]) {
      const answer = await world.ask(made.json().id, 'POST', 'rerun/', body);
      expect([answer.status, answer.body.detail]).toEqual([400, expect.stringContaining(type)]);
    }
  });
});

describe('a rerun with a filter, as PostHog takes it', () => {
  const ask = (filter: object, beside: object = {}) =>
    world.ask(id, 'POST', 'rerun/', { filter, rate_per_second: null, ...beside });
  const window = { window_start: after, window_end: before };

  test('takes what ended in its window with one of its statuses', async () => {
    await end(5);
    await end(4, { status: 'cancelled' });
    await end(3, { status: 'succeeded' });
    await end(2, { from: before });
    const failed = await ask(window);
    expect(failed).toMatchObject({ status: 200, body: { queued_count: 0, skipped_count: 0 } });
    const { id: job } = failed.body.rerun as Shown;
    expect(failed.body.rerun_job_id).toBe(job);
    expect(await world.until(id, job, 'completed')).toMatchObject({ queued: 5 });
    const others = await ask({ ...window, status: ['running', 'succeeded', 'cancelled'] });
    expect(await world.until(id, others.body.rerun_job_id as string, 'completed')).toMatchObject({
      queued: 7,
      selection: { status: ['succeeded', 'cancelled'], search: null },
    });
  });

  test('takes of its ids those that ended in its window with one of its statuses', async () => {
    await end(3);
    await end(2, { status: 'succeeded' });
    await end(2, { from: before });
    const { rows } = await world.api.pool.query('select id from function_invocations');
    const ids = rows.map((row) => row.id);
    const failed = await ask({ ...window, invocation_ids: ids });
    expect(failed.body).toEqual({ queued_count: 3, skipped_count: 4, rerun_job_id: null, rerun: null });
    const all = await ask({ ...window, invocation_ids: ids, status: ['failed', 'succeeded'] });
    expect(all.body).toMatchObject({ queued_count: 2, skipped_count: 5 });
  });

  test.each([
    [{}, 'filter__window_start', /required/],
    [{ window_start: before, window_end: after }, 'filter__window_end', /must be after 'window_start'/],
    [{ ...window, status: ['running'] }, 'filter__status', /succeeded, failed, cancelled/],
    [{ ...window, status: 'failed' }, 'filter__status', /./],
    [{ ...window, max_count: 5 }, 'filter__max_count', /not supported/],
    [{ ...window, error_message_contains: 'x' }, 'filter__error_message_contains', /`search`/],
  ])('refuses %j', async (filter, attr, detail) => {
    await end(1);
    expect(await ask(filter)).toMatchObject({
      status: 400,
      body: { attr, detail: expect.stringMatching(detail) },
    });
    expect(await queued()).toEqual([]);
  });

  test('asks for the scopes of persons and groups, too', async () => {
    const scopes = ['hog_function:write', 'person:read', 'group:read'];
    const statusWithout = async (missing: string) => {
      const { value: key } = await world.api.createKey(world.anna, {
        scopes: scopes.filter((one) => one !== missing),
      });
      const url = `/api/projects/${world.anna.projectId}/hog_functions/${id}/rerun/`;
      const filter = { ...window, invocation_ids: [id] };
      const answer = await world.api.request(key, 'POST', url, { filter });
      return [answer.statusCode, answer.json().detail];
    };
    for (const scope of scopes) {
      expect(await statusWithout(scope)).toEqual([403, `API key missing required scope '${scope}'`]);
    }
    expect((await statusWithout('none'))[0]).toBe(200);
  });

  test('refuses other choices beside the filter', async () => {
    expect(await ask(window, { search: 'x' })).toMatchObject({
      status: 400,
      body: { attr: 'search', detail: 'Give either `filter` or `search`.' },
    });
  });
});

describe('the pages of a rerun', () => {
  const reference = async () => {
    const { id: replayId } = await rerun({ after, rate_per_second: 1 });
    await world.ask(id, 'POST', `replays/${replayId}/cancel/`);
    // Its workflow must not go on with what follows.
    await world.client.workflow.getHandle(replayWorkflowId({ kind: 'rerun', id: replayId })).result();
    await world.api.pool.query('truncate function_queue');
    await world.api.pool.query(
      `update function_replays set status = 'running', rate_per_second = null, page = 0, horizon = null, last_timestamp = null,
         last_id = null, scanned = 0, matched = 0, queued = 0, finished_at = null where id = $1`,
      [replayId],
    );
    await world.api.pool.query('update function_invocations set rerun_at = null');
    return { projectId: world.anna.projectId, replayId };
  };

  test('are done once each, by however many workers at the same time', async () => {
    await end(3_500);
    const one = await reference();
    await beginReplay(world.steps, one, unstopped());
    const reports = await Promise.all(
      Array.from({ length: 4 }, () => replayPages(world.steps, one, unstopped())),
    );
    expect(reports.map(({ status }) => status)).toEqual(Array(4).fill('completed'));
    const all = await queued();
    expect(all).toHaveLength(3_500);
    expect(new Set(all.map((row) => row.rerun_of)).size).toBe(3_500);
  });

  test('count what somebody else has run again meanwhile as not queued', async () => {
    await end(20);
    const one = await reference();
    await beginReplay(world.steps, one, unstopped());
    // Somebody else runs five of them again, and has not committed yet.
    await lockedOut(world.api.pool, {
      sql: 'update function_invocations set rerun_at = now() where id in (select id from function_invocations order by finished_at limit 5)',
      meanwhile: () => replayPages(world.steps, one, unstopped()),
    });
    expect(await world.show(id, one.replayId)).toMatchObject({
      status: 'completed',
      matched: 20,
      queued: 15,
    });
    expect(await queued()).toHaveLength(15);
  });

  test('begin when everything is written that had ended', async () => {
    await end(10);
    const one = await reference();
    /** How often it was asked whether everything is written. */
    let asked = 0;
    const pool = new Proxy(world.api.pool, {
      get(target, name) {
        const found: unknown = Reflect.get(target, name);
        if (name !== 'query') return typeof found === 'function' ? found.bind(target) : found;
        return (text: unknown, values: unknown) => {
          if (String(text).startsWith('select pg_snapshot_xmin(')) asked += 1;
          return (found as (...all: unknown[]) => unknown).call(target, text, values);
        };
      },
    });
    const steps = { ...world.steps, pool };
    const report = await lockedOut(world.api.pool, {
      sql: `insert into function_invocations select project_id, gen_random_uuid(), function_id, version, mapping, event_uuid,
        event_timestamp, distinct_id, person_id, groups, globals, status, 'late', attempts, null, null, null, created_at,
        finished_at from function_invocations where function_id = $1 and finished_at >= $2 order by finished_at limit 1`,
      values: [id, after],
      meanwhile: async () => {
        await beginReplay(steps, one, unstopped());
        return replayPages(steps, one, unstopped());
      },
      // Without the wait, it is at its end.
      isWaiting: async () => asked > 1 || (await world.show(id, one.replayId)).status === 'completed',
    });
    expect(report).toMatchObject({ status: 'completed', queued: 11 });
  });
});
