import { afterAll, describe, expect, test } from '@jest/globals';
import { ThreadError, ThreadPool, type ThreadPoolOptions } from '../../../hog/threads/pool.ts';
import type { Job } from './spinner.ts';

const pools: ThreadPool<Job, unknown>[] = [];
afterAll(() => Promise.all(pools.map((one) => one.close())));

function poolOf(options: Partial<ThreadPoolOptions> = {}): ThreadPool<Job, unknown> {
  const entry = new URL('./spinner.ts', import.meta.url);
  const pool = new ThreadPool<Job, unknown>({ entry, threads: 2, maxWaiting: 100, ...options });
  pools.push(pool);
  return pool;
}
const long = () => ({ limitMs: 60_000, usedMs: 0 });
const short = () => ({ limitMs: 300, usedMs: 0 });
const echo = (value: unknown): Job => ({ kind: 'echo', value });
const spin: Job = { kind: 'spin' };

const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'answered',
    (error: unknown) => (error instanceof ThreadError ? error.code : error),
  );

describe('a pool of threads', () => {
  test('answers, says why there is no answer, and goes on afterwards', async () => {
    const pool = poolOf({ threads: 1 });
    expect(await pool.run(echo({ a: [1] }), long())).toEqual({ a: [1] });
    await expect(pool.run({ kind: 'fail' }, long())).rejects.toMatchObject({
      code: 'failed',
      failure: { name: 'TypeError', message: 'wrong', field: 'x', detail: null },
    });
    expect(await codeOf(pool.run({ kind: 'exit' }, long()))).toBe('lost');
    expect(await codeOf(pool.run(spin, short()))).toBe('timeout');
    expect(await pool.run(echo(2), long())).toBe(2);
  });

  test('one owner never has all threads, so that jobs of others are done meanwhile', async () => {
    const pool = poolOf({ threads: 2 });
    const ended: string[] = [];
    const note = (name: string, promise: Promise<unknown>) => codeOf(promise).then(() => ended.push(name));
    const budget = { limitMs: 5_000, usedMs: 0 };
    const greedy = Array.from({ length: 3 }, () => note('greedy', pool.run(spin, { ...budget }, 'greedy')));
    for (let i = 0; i < 20; i++) await note('other', pool.run(echo(i), long(), 'other'));
    expect(ended).toEqual(Array(20).fill('other'));
    await pool.close();
    await Promise.all(greedy);
  });

  test('who has the fewest jobs in progress comes first, however long the line of others is', async () => {
    const pool = poolOf({ threads: 3 });
    const ended: string[] = [];
    const note = (name: string, promise: Promise<unknown>) =>
      promise.then(
        () => ended.push(name),
        () => {},
      );
    // Both of these threads of `greedy` are taken, so its further jobs wait.
    const greedy = [1, 2, 3, 4].map(() => note('greedy', pool.run(spin, long(), 'greedy')));
    await Promise.all([1, 2, 3].map((i) => note(`other ${i}`, pool.run(echo(i), long(), `other ${i}`))));
    expect(ended).toEqual(['other 1', 'other 2', 'other 3']);
    await pool.close();
    await Promise.all(greedy);
  });

  test('owners take turns, however many jobs one of them has', async () => {
    const pool = poolOf({ threads: 1 });
    const ended: string[] = [];
    const note = (name: string, owner: string) =>
      pool.run(echo(name), long(), owner).then(() => void ended.push(name));
    const greedy = ['a1', 'a2', 'a3', 'a4'].map((name) => note(name, 'a'));
    await Promise.all([...greedy, note('b1', 'b'), note('b2', 'b'), note('c1', 'c')]);
    expect(ended).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4']);
  });

  test('a job that cannot be sent fails alone, also if it had to wait', async () => {
    const pool = poolOf({ threads: 1 });
    let deep: unknown[] = [];
    for (let level = 0; level < 100_000; level += 1) deep = [deep];
    expect(await codeOf(pool.run(echo(deep), long()))).toBe('unsent');
    // The thread that makes such a thing goes on.
    const [first, answer, last] = [
      pool.run({ kind: 'thread' }, long()),
      pool.run({ kind: 'nest', levels: 100_000 }, long()),
      pool.run({ kind: 'thread' }, long()),
    ];
    expect(await codeOf(answer)).toBe('unsent');
    expect(await last).toBe(await first);
    const jobs = [echo(1), echo(deep), echo(2)].map((job) => pool.run(job, long()));
    expect((await Promise.allSettled(jobs)).map(({ status }) => status)).toEqual([
      ...['fulfilled', 'rejected', 'fulfilled'],
    ]);
  });

  test('the lines are limited: for all, and for each owner', async () => {
    const pool = poolOf({ threads: 1, maxWaiting: 4, maxWaitingOfOne: 2 });
    const first = codeOf(pool.run(spin, long(), 'a'));
    const jobs = ['a', 'a', 'a', 'b', 'b', 'c'].map((owner) => codeOf(pool.run(echo(owner), long(), owner)));
    // The third of `a` is one too many of its owner, the only one of `c` is one too many of all.
    expect(await Promise.race([jobs[2], jobs[0]])).toBe('busy');
    expect(await Promise.race([jobs[5], jobs[3]])).toBe('busy');
    await pool.close();
    expect(await Promise.all([first, ...jobs])).toEqual(Array(7).fill('busy'));
    expect(await codeOf(pool.run(echo(1), long()))).toBe('busy');
  });

  test('a job that nobody waits for frees its thread, and one in the queue leaves it', async () => {
    const pool = poolOf({ threads: 1 });
    const gone = new AbortController();
    const given = [spin, echo('never')].map((job) => pool.run(job, long(), 'a', gone.signal));
    const waiting = pool.run(echo('mine'), long(), 'b');
    gone.abort(new Error('gone'));
    expect((await Promise.allSettled(given)).map((one) => 'reason' in one && one.reason.message)).toEqual([
      'gone',
      'gone',
    ]);
    expect(await waiting).toBe('mine');
    await expect(pool.run(echo(1), long(), 'a', gone.signal)).rejects.toThrow('gone');
  });

  test('a job may wait for longer than it may compute, but not for ever', async () => {
    const pool = poolOf({ threads: 1 });
    const wait = (milliseconds: number): Job => ({ kind: 'wait', milliseconds });
    const budget = { limitMs: 1_000, usedMs: 0 };
    // Only Linux tells how long a thread has computed.
    const isTold = process.platform === 'linux';
    expect(await codeOf(pool.run(wait(2_000), budget))).toBe(isTold ? 'answered' : 'timeout');
    if (isTold) expect(budget.usedMs).toBeLessThan(budget.limitMs);
    expect(await codeOf(pool.run(wait(60_000), short()))).toBe('timeout');
    expect(await codeOf(pool.run(spin, short()))).toBe('timeout');
  });

  test('several jobs can share one budget of time', async () => {
    const pool = poolOf({ threads: 1 });
    const budget = short();
    expect(await codeOf(pool.run(spin, budget))).toBe('timeout');
    expect(budget.usedMs).toBeGreaterThanOrEqual(budget.limitMs);
    expect(await codeOf(pool.run(spin, budget))).toBe('timeout');
  });
});
