import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, expect, test } from '@jest/globals';
import { Compute } from '../../functions/delivery/compute.ts';
import type { Runnable } from '../../functions/delivery/contents.ts';
import type { StepItem } from '../../functions/run.ts';
import { createRunner } from '../../functions/runner.ts';

const runner = createRunner({ threads: 1 });
afterAll(() => runner.close());

/** Returns a number. */
const runnable = { bytecode: ['_H', 1, 33, 7, 38] } as unknown as Runnable;
const item: StepItem = { globals: {}, frame: { now: 0, seed: 1 }, given: {}, answers: [] };
/** Too much for the thread that makes requests. */
const size = 1024 * 1024;

test('steps that a job had no time for are asked for again, behind the others', async () => {
  const jobs: number[] = [];
  const hurried: typeof runner = {
    ...runner,
    // A thread that has time for one step of a job.
    async steps(projectId, job) {
      jobs.push(job.items.length);
      return (await runner.steps(projectId, { ...job, items: job.items.slice(0, 1) })).slice(0, 1);
    },
  };
  const compute = new Compute(hurried);
  const asked = [1, 2, 3].map(() => compute.step(1, 'one', runnable, {}, { item, size }));
  const answered = await Promise.all(
    asked.map((one) => Promise.race([one, pause(10_000, 'none', { ref: false })])),
  );
  expect(answered).toEqual(Array(3).fill(expect.objectContaining({ status: 'finished' })));
  expect(jobs).toEqual([3, 2, 1]);
});
