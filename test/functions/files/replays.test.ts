import { expect, test } from '@jest/globals';
import { ReplayMatcher } from '../../../functions/replay/matcher.ts';
import { beginReplay, replayPages } from '../../../functions/runs/replays.ts';
import { createLogger } from '../../../telemetry/logger.ts';
import { insertEvents, insertPerson } from '../../support/rows.ts';
import { unstopped } from '../runtime/replay-world.ts';
import { filesWorldForFile } from './support.ts';

const world = filesWorldForFile();
const range = ['--after', '2026-01-01', '--before', '2026-02-01T00:00:00Z'];

const create = async () =>
  (await world.ask('POST', '', { type: 'destination', hog: 'return 1', enabled: true })).id as string;

/** Does what a worker does for the replays in progress. */
async function work(): Promise<void> {
  const { pool, schedules, config } = world.api;
  const matcher = new ReplayMatcher(pool);
  const logger = createLogger({ name: 'test', level: 'silent' });
  const deps = { pool, matcher, logger, temporal: schedules.functions, site: config.SLUICE_PUBLIC_URL };
  const { rows } = await pool.query("select project_id, id from function_replays where status = 'running'");
  for (const { project_id: projectId, id: replayId } of rows) {
    await beginReplay(deps, { projectId, replayId }, unstopped());
    await replayPages(deps, { projectId, replayId }, unstopped());
  }
  await matcher.close();
}

test('a replay is begun, shown, steered and waited for', async () => {
  const { projectId: project_id } = world.tenant;
  await insertEvents(world.api.pool, [
    { project_id, timestamp: '2026-01-05T00:00:00Z' },
    { project_id, timestamp: '2026-01-06T00:00:00Z' },
  ]);
  const id = await create();
  const begun = await world.run(['replay', id, ...range, '--rate', '5']);
  expect(begun).toMatchObject({ code: 0 });
  expect(begun.stdout).toContain('replay  running  0 events looked at, 0 match, 0 invocations queued');
  const [replay] = begun.stdout.split(' ') as [string];
  const second = await world.run(['replay', id, ...range]);
  expect(second.code).toBe(1);
  expect(second.stderr).toContain('already has a replay, a broadcast or a rerun in progress');
  expect((await world.run(['replays', id, replay, '--pause'])).stdout).toContain('replay  paused');
  expect((await world.run(['replays', id, replay, '--resume'])).stdout).toContain('replay  running');
  await work();
  expect((await world.run(['replays', id])).stdout).toContain(
    'completed  2 of 2 events looked at, 2 match, 2 invocations queued',
  );
  expect((await world.run(['replays', id, replay, '--cancel'])).stderr).toContain(
    'Cannot cancel a replay that has completed.',
  );
  const lately = await world.run(['replay', id, '--after=-7d', '--before=-1h', '--count']);
  expect(lately).toMatchObject({ code: 0, stdout: expect.stringContaining('replay  running') });
});

test('persons are counted before a broadcast', async () => {
  await insertPerson(world.api.pool, world.tenant.projectId, {
    ...{ id: '00000000-0000-4000-8000-000000000009', distinct_ids: ['ada'], properties: { plan: 'paid' } },
  });
  const id = await create();
  const properties = JSON.stringify([{ key: 'plan', value: 'paid', type: 'person', operator: 'exact' }]);
  const waiting = world.run(['broadcast', id, '--properties', properties, '--count', '--wait']);
  let isOver = false;
  const over = waiting.finally(() => {
    isOver = true;
  });
  while (!isOver) await work();
  await over;
  expect(await waiting).toMatchObject({ code: 0 });
  expect((await waiting).stdout).toContain(
    'broadcast  completed  1 of 1 persons looked at, 1 match, 1 invocations counted',
  );
});

test.each([
  [['replay', 'x'], 'Say which events'],
  [['replay', 'x', '--after', 'soon', '--before', '2026-02-01'], '--after: "soon" is not a time.'],
  [['replay', 'x', ...range, '--rate', 'fast'], '--rate: "fast" is neither'],
  [['replay', '../x', ...range], '"../x" is not an id.'],
  [['broadcast', 'x', '--properties', '{'], '--properties: not JSON'],
  [['replays', 'x', '--pause'], 'Say which one to pause'],
  [['rerun', 'x'], 'Say which invocations'],
  [['cancel', 'x', '--after', 'soon'], '--after: "soon" is not a time.'],
  [
    ['rerun', 'x', '--after', '2026-01-01', '--function-version', 'old'],
    '--function-version: "old" is neither',
  ],
  [['replays', 'x', 'y', '--pause', '--cancel'], 'Say one of --pause, --resume and --cancel.'],
])('%j is refused', async (args, message) => {
  const { code, stderr } = await world.run(args);
  expect(code).toBe(2);
  expect(stderr).toContain(message);
});

test('what has failed is listed, run again, dismissed, and what waits is cancelled', async () => {
  const { pool } = world.api;
  const id = await create();
  await pool.query(
    `insert into function_invocations (project_id, id, function_id, version, status, error, attempts, distinct_id, globals, created_at, finished_at)
     select $1, gen_random_uuid(), $2, 1, 'failed', 'It said ' || n, '[]', 'd', '{}', at, at
     from (select n, timestamptz '2026-01-05T00:00:00Z' + n * interval '1 second' as at from generate_series(1, 6) n) one`,
    [world.tenant.projectId, id],
  );
  const listed = await world.run(['dead-letters', id, '--search', 'said 3']);
  expect(listed.stdout).toMatch(/^\S+ {2}2026-01-05T00:00:03.*no answer {2}It said 3\n$/);
  const [third] = listed.stdout.split(' ') as [string];
  expect(
    (await world.run(['dead-letters', id, '--limit', '2', '--json'])).stdout.trim().split('\n'),
  ).toHaveLength(2);
  expect((await world.run(['rerun', id, '--id', third, '--function-version', 'current'])).stdout).toBe(
    '1 invocations run again, 0 cannot.\n',
  );
  expect((await world.run(['dismiss', id, '--search', 'said 1'])).stdout).toBe('1 invocations dismissed.\n');
  const rerun = await world.run(['rerun', id, '--after', '2026-01-05', '--rate', 'none']);
  expect(rerun.stdout).toContain('rerun  running  0 ended invocations looked at');
  await work();
  expect((await world.run(['replays', id])).stdout).toContain(
    'rerun  completed  4 of 4 ended invocations looked at, 4 match, 4 invocations queued',
  );
  expect((await world.run(['cancel', id, '--before', '2100-01-01'])).stdout).toBe(
    '5 invocations cancelled.\n',
  );
  const none = await world.run(['dead-letters', id]);
  expect(none).toMatchObject({ code: 0, stdout: '' });
  expect(none.stderr).toContain('Nothing has failed');
});
