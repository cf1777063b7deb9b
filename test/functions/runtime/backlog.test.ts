import { randomUUID } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { deliveryBacklog, dispatchBacklog } from '../../../functions/runs/backlog.ts';
import { FUNCTION_DISPATCH, FUNCTION_RETRIES } from '../../../workflows/names.ts';
import { replayWorldForFile } from './replay-world.ts';
import { sender } from './world.ts';

// Nothing is matched or delivered here: it stays there to be counted.
const world = replayWorldForFile({ delivers: false });

async function runOf(workflowType: string) {
  const workflow = await world.client.workflow.start(workflowType, {
    workflowId: randomUUID(),
    taskQueue: world.api.config.SLUICE_TASK_QUEUE,
  });
  return { workflow, result: await workflow.result() };
}

test('what functions have not seen, and what waits for its attempts, is shown in Temporal', async () => {
  const { pool } = world.api;
  const { projectId } = world.anna;
  expect(await dispatchBacklog({ pool })).toEqual({
    ...{ batches: 0, events: 0, oldest: null, late: 0, lateProjects: 0 },
  });
  expect(await deliveryBacklog({ pool })).toEqual({ waiting: 0, failing: 0, projects: [] });
  const id = await world.create(sender(world.url(), {}));
  await world.capture([{}, {}, {}]);
  await pool.query(
    `insert into function_queue (id, project_id, function_id, version, clock, seed, attempt, created_at)
     select gen_random_uuid(), case when n <= 3 then $1::int else 7 end, $2, 1, now(), 1, n % 2, now() - n * interval '1 hour'
     from generate_series(1, 5) n`,
    [projectId, id],
  );
  await pool.query("insert into function_late_batches (project_id, keys) values (7, ''), (7, '')");
  const dispatch = await runOf(FUNCTION_DISPATCH);
  expect(dispatch.result).toMatchObject({ batches: 1, events: 3, late: 2, lateProjects: 1 });
  expect(dispatch.result.oldest).toBeGreaterThanOrEqual(0);
  const retries = await runOf(FUNCTION_RETRIES);
  expect(retries.result).toMatchObject({
    ...{ waiting: 5, failing: 3 },
    projects: [
      { projectId, waiting: 3, failing: 2 },
      { projectId: 7, waiting: 2, failing: 1 },
    ],
  });
  expect(retries.result.projects[1].oldest).toBeGreaterThanOrEqual(5 * 3_600);
});
