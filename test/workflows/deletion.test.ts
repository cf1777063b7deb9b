import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Client, ScheduleNotFoundError } from '@temporalio/client';
import { searchAttributes } from '../../workflows/names.ts';
import type { Tenant } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { connectTo } from '../support/temporal.ts';
import { apiAndWorkerForFile } from '../support/worker.ts';

const { api } = apiAndWorkerForFile();
let client: Client;
afterAll(() => client?.connection.close());

beforeAll(async () => {
  const { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace } = api.config;
  client = await connectTo({ address: address as string, namespace });
});

/** A schedule and a run of the project, on a queue that nobody works on, so that they last. */
async function work({ projectId }: Tenant): Promise<{ scheduleId: string; workflowId: string }> {
  const typedSearchAttributes = [{ key: searchAttributes.project, value: projectId }];
  const [scheduleId, workflowId] = [`schedule-of-${projectId}`, `run-of-${projectId}`];
  await client.schedule.create({
    scheduleId,
    spec: { intervals: [{ every: '1 hour' }] },
    action: {
      type: 'startWorkflow',
      workflowType: 'maintenance',
      taskQueue: 'nobody',
      typedSearchAttributes,
    },
    typedSearchAttributes,
  });
  await client.workflow.start('maintenance', { workflowId, taskQueue: 'nobody', typedSearchAttributes });
  return { scheduleId, workflowId };
}

const scheduleIsGone = (scheduleId: string) =>
  client.schedule
    .getHandle(scheduleId)
    .describe()
    .then(
      () => false,
      (error) => error instanceof ScheduleNotFoundError,
    );
const statusOf = async (workflowId: string) =>
  (await client.workflow.getHandle(workflowId).describe()).status.name;

/** Visible in lists, which is where the deletion looks. */
async function listed(workflowId: string, scheduleId: string): Promise<boolean> {
  const found = new Set<string>();
  for await (const run of client.workflow.list()) found.add(run.workflowId);
  for await (const schedule of client.schedule.list()) found.add(schedule.scheduleId);
  return found.has(workflowId) && found.has(scheduleId);
}

describe('deleting an organization', () => {
  test("stops its projects' schedules and runs, deletes their data, and touches nobody else's", async () => {
    const [doomed, other] = [await api.createTenant('Doomed'), await api.createTenant('Other')];
    const [theirs, others] = [await work(doomed), await work(other)];
    await eventually(() => listed(theirs.workflowId, theirs.scheduleId));
    for (const { projectId } of [doomed, other]) {
      await api.pool.query(
        `insert into group_types (project_id, group_type_index, group_type) values ($1, 0, 'company')`,
        [projectId],
      );
    }
    expect(await statusOf(theirs.workflowId)).toBe('RUNNING');
    const deleted = await api.request(doomed, 'DELETE', `/api/organizations/${doomed.organizationId}/`);
    expect(deleted.statusCode).toBe(204);

    const { rows } = await eventually(async () => {
      const found = await api.pool.query(
        `select project_id, organization_id, schedules_stopped_at <= data_deleted_at as in_order
         from project_deletions where data_deleted_at is not null`,
      );
      return found.rows.length > 0 && found;
    });
    expect(rows).toEqual([
      { project_id: doomed.projectId, organization_id: doomed.organizationId, in_order: true },
    ]);
    expect(await scheduleIsGone(theirs.scheduleId)).toBe(true);
    expect(await statusOf(theirs.workflowId)).toBe('TERMINATED');
    expect(await scheduleIsGone(others.scheduleId)).toBe(false);
    expect(await statusOf(others.workflowId)).toBe('RUNNING');
    const left = await api.pool.query('select project_id from group_types');
    expect(left.rows).toEqual([{ project_id: other.projectId }]);
    expect((await api.request(other, 'GET', `/api/projects/${other.projectId}/`)).statusCode).toBe(200);
  });
});
