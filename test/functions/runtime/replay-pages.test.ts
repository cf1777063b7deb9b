import { beforeEach, describe, expect, test } from '@jest/globals';
import { MOST_ACTIVE, MOST_WAITING } from '../../../functions/rules/replay.ts';
import { beginReplay, endReplay, mendReplays, replayPages } from '../../../functions/runs/replays.ts';
import { replayWorldForFile, unstopped } from './replay-world.ts';
import { sender } from './world.ts';

// Nothing is delivered here: what is queued stays there to be counted.
const world = replayWorldForFile({ delivers: false, worker: false });
const orders = { filters: { events: [{ id: 'order', type: 'events' }] } };
const range = {
  after: '2026-04-01T00:00:00.000Z',
  before: '2026-05-01T00:00:00.000Z',
  rate_per_second: null,
};
let id: string;

beforeEach(async () => {
  await world.api.pool.query('truncate events, function_queue, function_replays, function_states');
  id = await world.create(sender('http://127.0.0.1:9', orders));
});

const begin = async (body: object = {}) => {
  const { id: replayId } = await world.begin(id, { ...range, ...body });
  const reference = { projectId: world.anna.projectId, replayId };
  await beginReplay(world.steps, reference, unstopped());
  return reference;
};

describe('the pages of a replay', () => {
  test('are done once each, by however many workers at the same time', async () => {
    const uuids = await world.store(range.after, 3_500);
    const reference = await begin();
    const reports = await Promise.all(
      Array.from({ length: 4 }, () => replayPages(world.steps, reference, unstopped())),
    );
    expect(reports.map((one) => one.status)).toEqual(Array(4).fill('completed'));
    expect(reports[0]).toMatchObject({ total: 3_500, scanned: 3_500, matched: 3_500, queued: 3_500 });
    expect(await world.waiting(id)).toEqual(uuids.sort());
  });

  test('write nothing where one of them fails, and go on from there', async () => {
    const uuids = await world.store(range.after, 2_500);
    const reference = await begin();
    // The second page cannot be written as a whole.
    await world.api.pool.query(`
      create function refuse_one() returns trigger language plpgsql as $$
      begin
        if new.event_uuid = '${uuids[1_700]}' then raise exception 'refused here'; end if;
        return new;
      end $$;
      create trigger refused before insert on function_queue for each row execute function refuse_one()`);
    const attempt = () => replayPages(world.steps, reference, unstopped());
    await expect(attempt()).rejects.toThrow('refused here');
    await expect(attempt()).rejects.toThrow('refused here');
    expect(await world.show(id, reference.replayId)).toMatchObject({ scanned: 1_000, queued: 1_000 });
    expect(await world.waiting(id)).toEqual(uuids.slice(0, 1_000).sort());
    await world.api.pool.query('drop trigger refused on function_queue; drop function refuse_one');
    expect(await attempt()).toMatchObject({ status: 'completed', scanned: 2_500, queued: 2_500 });
    expect(await world.waiting(id)).toEqual(uuids.sort());
  });

  test('stop at what the rate allows, and tell how long that lasts', async () => {
    const uuids = await world.store(range.after, 50);
    const reference = await begin({ rate_per_second: 2 });
    const first = await replayPages(world.steps, reference, unstopped());
    expect(first).toMatchObject({ status: 'running', scanned: 20, queued: 20, atLeast: 10_000, wait: 0 });
    expect(await world.waiting(id)).toEqual(uuids.slice(0, 20).sort());
    await replayPages(world.steps, reference, unstopped());
    const last = await replayPages(world.steps, reference, unstopped());
    expect(last).toMatchObject({ status: 'completed', queued: 50 });
    expect(await world.waiting(id)).toEqual(uuids.sort());
  });

  test('leave out what is stored after they began, and take events of the same time', async () => {
    const uuids = await world.store(range.after, 1_100, { timestamp: range.after });
    const reference = await begin();
    const later = new Date(Date.now() + 60_000).toISOString();
    await world.store(range.after, 10, { inserted_at: later });
    expect(await replayPages(world.steps, reference, unstopped())).toMatchObject({
      ...{ status: 'completed', scanned: 1_100 },
    });
    expect(await world.waiting(id)).toEqual(uuids.sort());
  });

  test('wait while the function has too many invocations, and while it is disabled for its cost', async () => {
    const { projectId } = world.anna;
    await world.store(range.after, 5);
    const reference = await begin();
    const call = () => replayPages(world.steps, reference, unstopped());
    const fill = (count: number) =>
      world.api.pool.query(
        `insert into function_queue (id, project_id, function_id, version, clock, seed)
         select gen_random_uuid(), $1, $2, 1, now(), 1 from generate_series(1, $3)`,
        [projectId, id, count],
      );
    await fill(MOST_WAITING + 1);
    expect(await call()).toMatchObject({ status: 'running', held: 'queue', queued: 0, wait: 30_000 });
    expect(await world.show(id, reference.replayId)).toMatchObject({ held: 'queue', scanned: 0 });
    await world.api.pool.query('truncate function_queue');
    await world.api.pool.query(
      'insert into function_states (project_id, function_id, tokens, state) values ($1, $2, 0, 4)',
      [projectId, id],
    );
    expect(await call()).toMatchObject({ status: 'running', held: 'watcher', queued: 0 });
    await world.api.pool.query('truncate function_states');
    // With the five of the replay there are as many as may wait.
    await fill(MOST_WAITING - 5);
    expect(await call()).toMatchObject({ status: 'completed', held: null, queued: 5 });
  });

  test('end where the function stops or the replay is paused, and nothing is queued any more', async () => {
    await world.store(range.after, 5);
    const reference = await begin();
    const call = () => replayPages(world.steps, reference, unstopped());
    await world.ask(id, 'POST', `replays/${reference.replayId}/pause/`);
    expect(await call()).toMatchObject({ status: 'paused', queued: 0 });
    await world.ask(id, 'POST', `replays/${reference.replayId}/resume/`);
    await world.change(id, { enabled: false });
    expect(await call()).toMatchObject({ status: 'cancelled', reason: 'The function was switched off.' });
    await world.change(id, { enabled: true });
    expect(await call()).toMatchObject({ status: 'cancelled', queued: 0 });
    expect(await world.waiting(id)).toEqual([]);
  });

  test('count errors of filters once, also where the rate ends a page early', async () => {
    await world.store(range.after, 25);
    const mapping = (name: string) => ({ name, inputs: {}, filters: orders.filters });
    await world.change(id, { mappings: [mapping('Broken'), mapping('Whole')] });
    await world.api.pool.query(
      "update functions set mappings = jsonb_set(mappings::jsonb, '{0,filters,bytecode}', $2)::json where id = $1",
      [id, JSON.stringify(['_H', 1, 32, 'id', 2, 'noSuchFunction', 1])],
    );
    const reference = await begin({ rate_per_second: 1 });
    for (let call = 0; call < 3; call += 1) await replayPages(world.steps, reference, unstopped());
    expect(await world.show(id, reference.replayId)).toMatchObject({
      ...{ status: 'completed', scanned: 25, matched: 25, queued: 25, filter_errors: 25 },
    });
  });

  test('count filters that fail, and go on', async () => {
    await world.store(range.after, 6);
    // What cannot be run stands in for a filter that fails.
    await world.api.pool.query(
      `update functions set filters = jsonb_build_object('bytecode', $2::jsonb)::json where id = $1`,
      [id, JSON.stringify(['_H', 1, 32, 'id', 2, 'noSuchFunction', 1])],
    );
    const reference = await begin();
    const ended = await replayPages(world.steps, reference, unstopped());
    expect(ended).toMatchObject({ status: 'completed', scanned: 6, matched: 0, queued: 0 });
    expect((await world.show(id, reference.replayId)).filter_errors).toBe(6);
    expect((await world.logs(id))[0]?.message).toMatch(/^Error filtering event /);
  });
});

describe('maintenance', () => {
  test('ends replays of functions that stopped, and stirs those that stand still', async () => {
    const reference = await begin();
    const stirred: string[] = [];
    const temporal = {
      ...world.steps.temporal,
      stir: async (row: { id: string }) => void stirred.push(row.id),
    };
    const mend = () => mendReplays({ ...world.steps, temporal }, unstopped());
    expect(await mend()).toBe(0);
    await world.api.pool.query("update function_replays set updated_at = now() - interval '3 minutes'");
    expect(await mend()).toBe(1);
    await world.ask(id, 'POST', `replays/${reference.replayId}/pause/`);
    await world.change(id, { deleted: true });
    expect(await mend()).toBe(1);
    expect(stirred).toEqual([reference.replayId, reference.replayId]);
    const { rows } = await world.api.pool.query('select status, reason from function_replays');
    expect(rows).toEqual([{ status: 'cancelled', reason: 'The function was deleted.' }]);
    expect(await mend()).toBe(0);
  });

  test('a project has only so many in progress', async () => {
    await world.api.pool.query(
      `insert into function_replays (project_id, id, function_id, kind, dry_run, status)
       select $1, gen_random_uuid(), gen_random_uuid(), 'replay', true, 'paused' from generate_series(1, ${MOST_ACTIVE})`,
      [world.anna.projectId],
    );
    const refused = await world.ask(id, 'POST', 'replay/', range);
    expect(refused).toMatchObject({
      status: 409,
      body: { detail: expect.stringMatching(/^This project already has 20 replays/) },
    });
    await world.api.pool.query(
      "delete from function_replays where id = (select id from function_replays where status = 'paused' limit 1)",
    );
    expect((await world.ask(id, 'POST', 'replay/', range)).status).toBe(201);
    await world.api.pool.query('delete from function_replays');
  });

  test('a replay that has ended stays as it ended', async () => {
    const reference = await begin();
    await replayPages(world.steps, reference, unstopped());
    const ended = await endReplay(world.steps, { ...reference, status: 'failed', reason: 'too late' });
    expect(ended).toMatchObject({ status: 'completed', reason: null });
    const gone = { projectId: world.anna.projectId, replayId: '01900000-0000-7000-8000-000000000000' };
    await beginReplay(world.steps, gone, unstopped());
    expect(await replayPages(world.steps, gone, unstopped())).toMatchObject({ status: 'cancelled' });
  });
});
