import { describe, expect, test } from '@jest/globals';
import { replayWorkflowId } from '../../../schedules/functions/function-schedules.ts';
import { searchAttributes } from '../../../workflows/names.ts';
import { eventually } from '../../support/eventually.ts';
import { replayWorldForFile } from './replay-world.ts';
import { sender } from './world.ts';

const world = replayWorldForFile();
const day = (number: number) => `2026-03-${String(number).padStart(2, '0')}T00:00:00.000Z`;
const orders = { filters: { events: [{ id: 'order', type: 'events' }] } };

const arrived = (path: string) =>
  world.arrivals
    .filter((one) => one.path === path)
    .map(({ body }) => JSON.parse(body).id as number)
    .sort((a, b) => a - b);
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);

describe('a replay', () => {
  test('runs a function once for each event of its range that the filters match', async () => {
    // Events of before the function was enabled, and historical ones.
    await world.store(day(1), 1_500);
    await world.store('2026-03-01T12:00:00.000Z', 40, { event: 'other' });
    await world.store(day(2), 1);
    const id = await world.create(sender(world.url('whole'), orders));
    const begun = await world.begin(id, { after: day(1), before: day(2), rate_per_second: null });
    expect(begun).toMatchObject({ kind: 'replay', status: 'running', scanned: 0, dry_run: false });
    const ended = await world.until(id, begun.id, 'completed');
    expect(ended).toMatchObject({ total: 1_540, scanned: 1_540, matched: 1_500, queued: 1_500, masked: 0 });
    expect(ended).toMatchObject({ reason: null, held: null, filter_errors: 0 });
    await world.idle();
    expect(arrived('whole')).toEqual(numbers(1_500));
    expect(await world.totals(id)).toMatchObject({ triggered: 1_500, succeeded: 1_500 });
    expect((await world.ask(id, 'GET', 'replays/')).body.results).toEqual([ended]);
    expect((await world.ask(id, 'GET', 'replays/?kind=broadcast')).body.results).toEqual([]);
  });

  test('takes historical events, and looks at the events as they are stored', async () => {
    await world.store(day(3), 3, { historical: true });
    const properties = [{ key: 'id', value: 1, operator: 'gte', type: 'event' }];
    const id = await world.create(
      sender(world.url('historical'), { filters: { events: [{ id: 'order', type: 'events', properties }] } }),
    );
    const begun = await world.begin(id, { after: day(3), before: day(4) });
    await world.until(id, begun.id, 'completed');
    await world.idle();
    expect(arrived('historical')).toEqual([1, 2]);
  });

  test('that only counts runs nothing, also while the function is disabled', async () => {
    await world.store(day(5), 30);
    const id = await world.create(sender(world.url('counted'), { ...orders, enabled: false }));
    const refused = await world.ask(id, 'POST', 'replay/', { after: day(5), before: day(6) });
    expect(refused.status).toBe(400);
    expect(refused.body.detail).toContain('The function is disabled.');
    const begun = await world.begin(id, { after: day(5), before: day(6), dry_run: true });
    const ended = await world.until(id, begun.id, 'completed');
    expect(ended).toMatchObject({ dry_run: true, scanned: 30, matched: 30, queued: 30 });
    expect(await world.waiting(id)).toEqual([]);
    expect(await world.history(id)).toEqual([]);
  });

  test('takes times that are relative to now, as previews do', async () => {
    const id = await world.create(sender(world.url('relative'), { ...orders, enabled: false }));
    const times = { after: '-2d', before: '-36h' };
    const begun = await world.begin(id, { ...times, dry_run: true });
    await world.until(id, begun.id, 'completed');
    const hours = Object.values({ after: begun.after, before: begun.before }).map(
      (one) => (Date.parse(begun.created_at as string) - Date.parse(one as string)) / 3_600_000,
    );
    expect(hours.map(Math.round)).toEqual([48, 36]);
    const preview = await world.ask(id, 'POST', 'preview/', times);
    expect([preview.status, Object.keys(preview.body).slice(0, 2)]).toEqual([200, ['after', 'before']]);
  });

  test('masks by the time of the events, and leaves the windows of new ones alone', async () => {
    // One event a second: 60 of each minute, of which the first is let through.
    await world.store(day(7), 180);
    const masking = { ttl: 60, hash: '{event.event}' };
    const id = await world.create(sender(world.url('masked'), { ...orders, masking }));
    const begun = await world.begin(id, { after: day(7), before: day(8) });
    const ended = await world.until(id, begun.id, 'completed');
    expect(ended).toMatchObject({ scanned: 180, matched: 180, masked: 177, queued: 3 });
    const left = async (table: string) =>
      (await world.api.pool.query(`select count(*)::int as count from ${table}`)).rows[0].count;
    expect(await left('function_replay_masks')).toBe(0);
    expect(await left('function_masks')).toBe(0);
    await world.idle();
    expect(arrived('masked')).toEqual([0, 60, 120]);
  });

  test('keeps to its rate, is shown in Temporal, and can be paused, resumed and cancelled', async () => {
    await world.store(day(9), 60);
    const id = await world.create(sender(world.url('steered'), orders));
    const begun = await world.begin(id, { after: day(9), before: day(10), rate_per_second: 1 });
    const handle = world.client.workflow.getHandle(replayWorkflowId({ kind: 'replay', id: begun.id }));
    const described = await handle.describe();
    const attribute = (key: Parameters<typeof described.typedSearchAttributes.get>[0]) =>
      described.typedSearchAttributes.get(key);
    expect(attribute(searchAttributes.kind)).toBe('function-replay');
    expect(attribute(searchAttributes.project)).toBe(world.anna.projectId);
    expect(attribute(searchAttributes.function)).toBe(id);
    expect((await handle.describe()).type).toBe('functionReplay');
    const other = await world.ask(id, 'POST', 'replay/', { after: day(9), before: day(10) });
    expect(other.status).toBe(409);
    expect(other.body.detail).toContain('already has a replay, a broadcast or a rerun in progress');

    // It has queued what the rate allows for ten seconds, and waits.
    await eventually(async () => (await world.show(id, begun.id)).queued === 10);
    const timers = async () =>
      (await handle.fetchHistory()).events?.filter((one) => one.timerStartedEventAttributes).length ?? 0;
    await eventually(async () => (await timers()) > 0);
    expect((await world.ask(id, 'POST', `replays/${begun.id}/resume/`)).status).toBe(400);
    const paused = await world.ask(id, 'POST', `replays/${begun.id}/pause/`);
    expect(paused).toMatchObject({ status: 200, body: { status: 'paused' } });
    expect((await world.ask(id, 'POST', `replays/${begun.id}/pause/`)).body.detail).toBe(
      'Cannot pause a replay that is paused.',
    );
    expect((await world.ask(id, 'POST', 'replay/', { after: day(9), before: day(10) })).status).toBe(409);
    expect((await world.ask(id, 'POST', `replays/${begun.id}/resume/`)).body.status).toBe('running');
    const cancelled = await world.ask(id, 'POST', `replays/${begun.id}/cancel/`);
    expect(cancelled.body).toMatchObject({ status: 'cancelled', reason: 'Cancelled by a user.' });
    expect(await handle.result()).toMatchObject({ status: 'cancelled' });
    expect((await world.ask(id, 'POST', `replays/${begun.id}/resume/`)).body.detail).toBe(
      'Cannot resume a replay that was cancelled. Start a new one.',
    );
    expect((await world.show(id, begun.id)).queued).toBeLessThan(60);
    const log = await world.api.pool.query(
      "select activity from activity_log where item_id = $1 and activity <> 'created' order by id",
      [id],
    );
    expect(log.rows.map((row) => row.activity)).toEqual(['replayed', 'paused', 'resumed', 'cancelled']);
  });

  test('ends when its function is switched off or deleted, and says so', async () => {
    await world.store(day(11), 60);
    for (const [fields, reason] of [
      [{ enabled: false }, 'The function was switched off.'],
      [{ deleted: true }, 'The function was deleted.'],
    ] as const) {
      const id = await world.create(sender(world.url('ended'), orders));
      const begun = await world.begin(id, { after: day(11), before: day(12), rate_per_second: 1 });
      const handle = world.client.workflow.getHandle(replayWorkflowId({ kind: 'replay', id: begun.id }));
      await world.change(id, fields);
      expect(await handle.result()).toMatchObject({ status: 'cancelled' });
      const { rows } = await world.api.pool.query(
        'select status, reason from function_replays where id = $1',
        [begun.id],
      );
      expect(rows).toEqual([{ status: 'cancelled', reason }]);
    }
  });

  test('whose workflow is cancelled in Temporal ends as cancelled', async () => {
    await world.store(day(13), 60);
    const id = await world.create(sender(world.url('stopped'), orders));
    const begun = await world.begin(id, { after: day(13), before: day(14), rate_per_second: 1 });
    const handle = world.client.workflow.getHandle(replayWorkflowId({ kind: 'replay', id: begun.id }));
    await handle.cancel();
    await expect(handle.result()).rejects.toThrow();
    expect(await world.show(id, begun.id)).toMatchObject({
      status: 'cancelled',
      reason: 'Its workflow was cancelled in Temporal.',
    });
  });

  test('goes on with a new history', async () => {
    await world.store(day(15), 30);
    const id = await world.create(sender(world.url('histories'), orders));
    const begun = await world.begin(id, { after: day(15), before: day(16), rate_per_second: 2 });
    const workflowId = replayWorkflowId({ kind: 'replay', id: begun.id });
    // The same row, with a workflow that has room for one call.
    await world.client.workflow.getHandle(workflowId).terminate();
    const { projectId } = world.anna;
    const handle = await world.client.workflow.start('functionReplay', {
      ...{ workflowId, taskQueue: world.api.config.SLUICE_TASK_QUEUE },
      args: [{ projectId, replayId: begun.id, pagesPerHistory: 1 }],
    });
    expect(await handle.result()).toMatchObject({ status: 'completed', queued: 30 });
    const first = await world.client.workflow.getHandle(workflowId, handle.firstExecutionRunId).describe();
    expect(first.status.name).toBe('CONTINUED_AS_NEW');
    await world.idle();
    expect(arrived('histories')).toEqual(numbers(30));
  });

  test.each([
    [{ before: day(2) }, 'after', 'This field is required.'],
    [{ after: day(2), before: day(2) }, 'before', 'The end of the range must be after'],
    [{ after: 'soon', before: day(2) }, 'after', ''],
    [{ after: day(1), before: day(2), rate_per_second: 0 }, 'rate_per_second', ''],
  ])('is refused with %j', async (body, field, detail) => {
    const id = await world.create(sender(world.url(), orders));
    const answer = await world.ask(id, 'POST', 'replay/', body);
    expect(answer).toMatchObject({ status: 400, body: { attr: field } });
    expect(answer.body.detail).toContain(detail);
  });

  test('is for destinations only', async () => {
    const id = await world.create({ type: 'transformation', hog: 'return event' });
    const answer = await world.ask(id, 'POST', 'replay/', { after: day(1), before: day(2) });
    expect(answer.status).toBe(400);
    expect(answer.body.detail).toContain('Functions of type transformation cannot replay events.');
  });
});
