import { randomUUID } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { activityInfo } from '@temporalio/activity';
import { PRODUCTS } from '../../products.ts';
import type { Product, Work } from '../../tenancy/product.ts';
import type { MaintenanceInput, MaintenanceReport } from '../../workflows/maintenance.ts';
import { eventually } from '../support/eventually.ts';
import { workerForFile } from '../support/worker.ts';

/** What `hangs` does. The schedule runs it too, so it is done at once unless a test says otherwise. */
let hang: (work: Work) => Promise<number> = async () => 0;
let steadyRuns = 0;
/** The workflows whose step `hangs` is at work, and those whose next step did not wait for it. */
const hanging = new Set<string>();
const impatient: string[] = [];
const workflow = () => activityInfo().workflowExecution?.workflowId ?? '';

/** A product whose steps make trouble. */
const trouble: Product<unknown> = {
  name: 'trouble',
  docs: 'docs/architecture.md',
  tables: [],
  sealed: [],
  scopes: [],
  maintenance: [
    {
      name: 'throws',
      summary: 'never',
      run: async () => {
        throw new Error('this step cannot be done');
      },
    },
    {
      name: 'hangs',
      summary: 'things done',
      run: async (_deps, work) => {
        const own = workflow();
        hanging.add(own);
        return hang(work).finally(() => hanging.delete(own));
      },
    },
    {
      name: 'followsHangs',
      summary: 'things done',
      after: 'hangs',
      run: async () => {
        if (hanging.has(workflow())) impatient.push(workflow());
        return 1;
      },
    },
    {
      name: 'steady',
      summary: 'things done',
      run: async () => {
        steadyRuns += 1;
        return 7;
      },
    },
  ],
};
const world = workerForFile({ products: [...PRODUCTS, trouble] });

const maintain = (input: MaintenanceInput): Promise<MaintenanceReport> =>
  world.client.workflow.execute('maintenance', {
    taskQueue: world.config.SLUICE_TASK_QUEUE,
    workflowId: `maintenance-${randomUUID()}`,
    args: [input],
  });

test('a step that throws and one that hangs do not keep the others from being done', async () => {
  const signals: AbortSignal[] = [];
  const released = Promise.withResolvers<number>();
  hang = ({ signal }) => {
    signals.push(signal);
    const aborted = new Promise<number>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
    });
    return Promise.race([aborted, released.promise]);
  };
  const report = await maintain({ longestMilliseconds: 5_000 });
  expect(report.failed.sort()).toEqual(['hangs', 'throws']);
  const own = PRODUCTS.flatMap((one) => one.maintenance.map(({ name }) => name));
  expect(Object.keys(report.counts)).toEqual(expect.arrayContaining([...own, 'expireSessions', 'steady']));
  expect([report.counts.steady, report.counts.followsHangs]).toEqual([7, 1]);
  // Each of its three attempts is told that nobody waits for it any more.
  await eventually(async () => signals.filter((one) => one.aborted).length === 3);
  released.resolve(0);
});

test('while a step takes long, the others go on as if it were not there', async () => {
  const until = steadyRuns + 4;
  impatient.splice(0);
  hang = async ({ signal, beat }) => {
    await eventually(async () => {
      signal.throwIfAborted();
      beat();
      return steadyRuns >= until;
    });
    return 1;
  };
  const { counts, failed } = await maintain({ everyMilliseconds: 200 });
  expect(failed).toEqual(['throws']);
  // Once, and again whenever the steps take longer than the pause.
  expect(counts.hangs).toBeGreaterThan(0);
  expect(counts.followsHangs).toBeGreaterThan(0);
  expect(impatient).toEqual([]);
  expect(counts.steady).toBeGreaterThan(7);
});

test('maintenance that is cancelled while steps are at work ends as cancelled, and reports no failed step', async () => {
  const began = Promise.withResolvers<void>();
  hang = ({ signal, beat }) => {
    began.resolve();
    const beating = setInterval(beat, 100);
    return new Promise<number>((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        clearInterval(beating);
        reject(signal.reason);
      });
    });
  };
  const workflowId = `maintenance-${randomUUID()}`;
  const handle = await world.client.workflow.start('maintenance', {
    taskQueue: world.config.SLUICE_TASK_QUEUE,
    workflowId,
    args: [{}],
  });
  await began.promise;
  await eventually(async () => hanging.has(workflowId));
  await handle.cancel();
  await expect(handle.result()).rejects.toThrow('Workflow execution cancelled');
  expect((await handle.describe()).status.name).toBe('CANCELLED');
});
