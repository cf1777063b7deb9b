import { type Client, ScheduleNotFoundError, WorkflowNotFoundError } from '@temporalio/client';
import { searchAttributes } from '../workflows/names.ts';

/** Deletes the schedules of a project and terminates its running workflows. Returns how many there were. */
export async function stopProject(
  client: Client,
  projectId: number,
): Promise<{ schedules: number; workflows: number }> {
  const ofProject = `${searchAttributes.project.name} = ${projectId}`;
  let schedules = 0;
  for await (const { scheduleId } of client.schedule.list({ query: ofProject })) {
    try {
      await client.schedule.getHandle(scheduleId).delete();
      schedules += 1;
    } catch (error) {
      if (!(error instanceof ScheduleNotFoundError)) throw error;
    }
  }
  let workflows = 0;
  for await (const { workflowId, runId } of client.workflow.list({
    query: `${ofProject} and ExecutionStatus = 'Running'`,
  })) {
    try {
      await client.workflow.getHandle(workflowId, runId).terminate('the project was deleted');
      workflows += 1;
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
    }
  }
  return { schedules, workflows };
}
