// An invocation that ends each worker that has it must not do so for ever, and must not take others along.
import { beforeEach, expect, test } from '@jest/globals';
import { claimBatches } from '../../../functions/rows/delivery-batches.ts';
import { claimInOrder } from '../../../functions/rows/lines.ts';
import { claim, type QueueRow } from '../../../functions/rows/queue.ts';
import { eventually } from '../../support/eventually.ts';
import { runtimeForFile, sender } from './world.ts';

const world = runtimeForFile({ starts: false });
const LEASE = '00000000-0000-4000-8000-000000000001';
const BATCH = '00000000-0000-4000-8000-000000000009';
beforeEach(() => {
  world.arrivals.length = 0;
});

const rows = async (sql: string, values: unknown[] = []) => (await world.api.pool.query(sql, values)).rows;

/** Queues invocations that were lost with so many workers, and are so with one more. */
const enqueue = (functionId: string, count: number, fields: Record<string, unknown> = {}) => {
  const all = { lease: LEASE, due_at: new Date(Date.now() - 1_000), ...fields };
  const names = Object.keys(all);
  return rows(
    `insert into function_queue (id, project_id, function_id, version, globals, clock, seed, ${names.join(', ')})
     select gen_random_uuid(), $1, $2, 1, '{"event": {"uuid": "", "properties": {}}}', now(), 1,
       ${names.map((_, at) => `$${at + 4}`).join(', ')} from generate_series(1, $3)`,
    [world.anna.projectId, functionId, count, ...Object.values(all)],
  );
};

const CLAIM = { lease: '00000000-0000-4000-8000-000000000002', seconds: 60 };
interface Key {
  projectId: number;
  functionId: string;
}
const claims: { how: string; fields: object; take: (key: Key) => Promise<QueueRow[]> }[] = [
  {
    how: 'at once',
    fields: {},
    take: (key) => claim(world.api.pool, [{ ...key, count: 9, since: '1970-01-01T00:00:00Z' }], CLAIM),
  },
  {
    how: 'in order',
    fields: { line: 'ada' },
    take: (key) => claimInOrder(world.api.pool, [{ ...key, count: 9 }], CLAIM),
  },
  {
    how: 'as a batch',
    fields: { batch: BATCH },
    take: (key) => claimBatches(world.api.pool, key, { ...CLAIM, count: 9 }),
  },
];
test.each(claims)(
  'a claim counts how many workers were lost with an invocation: $how',
  async ({ fields, take }) => {
    const functionId = await world.create({ ...sender(world.url()), enabled: false });
    const key = { projectId: world.anna.projectId, functionId };
    await enqueue(functionId, 1, { ...fields, lease: null });
    expect(await take(key)).toMatchObject([{ lost: 0 }]);
    for (const lost of [1, 2]) {
      await rows("update function_queue set due_at = clock_timestamp() - interval '1 second'");
      expect(await take(key)).toMatchObject([{ lost }]);
    }
    await rows('delete from function_queue');
  },
);

test('what ten workers were lost with ends as failed, before anything is done with it', async () => {
  const id = await world.create(sender(world.url()));
  await enqueue(id, 3, { lost: 9 });
  await enqueue(id, 1, { lost: 8 });
  const runtime = world.start();
  await world.idle();
  await world.stop(runtime);
  const history = await world.history(id);
  expect(history.filter(({ status }) => status === 'failed')).toEqual(
    Array(3).fill(expect.objectContaining({ error: expect.stringContaining('10 workers were lost') })),
  );
  expect(world.arrivals).toHaveLength(1);
  expect(await world.totals(id)).toMatchObject({ failed: 3, succeeded: 1 });
  await world.change(id, { enabled: false });
});

test('what three workers were lost with begins one at a time, and others do not wait', async () => {
  const [suspect, other] = [
    await world.create(sender(world.url('suspect'))),
    await world.create(sender(world.url('other'))),
  ];
  await enqueue(suspect, 4, { lost: 2 });
  await enqueue(other, 4, { lost: 1 });
  const runtime = world.start();
  await eventually(async () => world.arrivals.length === 8);
  await world.idle();
  await world.stop(runtime);
  const at = (path: string) => world.arrivals.filter((one) => one.path === path).map((one) => one.at);
  const begun = at('suspect');
  expect(Math.max(...at('other'))).toBeLessThan(begun[1] as number);
  // They are due a second apart. The first one may take some of that to begin.
  const pauses = begun.slice(1).map((time, index) => time - (begun[index] as number));
  expect(Math.min(...pauses)).toBeGreaterThan(200);
  expect((begun[3] as number) - (begun[0] as number)).toBeGreaterThan(1_500);
  expect(await world.totals(suspect)).toMatchObject({ succeeded: 4 });
});
