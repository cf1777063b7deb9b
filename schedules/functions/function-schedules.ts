import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { FunctionReplayInput, FunctionTemporal, StirredReplay } from '../../functions/temporal.ts';
import {
  BROADCAST_KIND,
  FUNCTION_BROADCAST,
  FUNCTION_REPLAY,
  FUNCTION_RERUN,
  NOTICE,
  NOTICE_KIND,
  REPLAY_CHANGED,
  REPLAY_KIND,
  RERUN_KIND,
  searchAttributes,
} from '../../workflows/names.ts';
import { plain, shortened } from '../summary.ts';

export interface FunctionSchedulesOptions {
  taskQueue: string;
  isReachable(): boolean;
  within<T>(milliseconds: number, work: () => Promise<T>): Promise<T>;
}

export const replayWorkflowId = ({ kind, id }: { kind: string; id: string }): string =>
  `function-${kind}-${id}`;

const KINDS = {
  replay: { workflow: FUNCTION_REPLAY, attribute: REPLAY_KIND, what: 'events', many: 'past events' },
  broadcast: { workflow: FUNCTION_BROADCAST, attribute: BROADCAST_KIND, what: 'persons', many: 'persons' },
  rerun: {
    ...{ workflow: FUNCTION_RERUN, attribute: RERUN_KIND },
    ...{ what: 'ended invocations', many: 'ended invocations again' },
  },
} as const;

/** How much of a name a summary shows, in bytes. */
const LONGEST_NAME = 60;
const named = (name: string | null, id: string | number): string => {
  const text = plain(name ?? '');
  return text === '' ? String(id) : shortened(text, LONGEST_NAME);
};
const called = ({ function_name, function_id, project_name, project_id }: StirredReplay): string =>
  `function ${named(function_name, function_id)} of project ${named(project_name, project_id)}`;

/** Implements with Temporal's client what functions need from Temporal. */
export function createFunctionSchedules(
  client: Client,
  { taskQueue, isReachable, within }: FunctionSchedulesOptions,
): FunctionTemporal {
  return {
    isReachable,
    within,
    async stir(replay) {
      const { project_id: projectId, id: replayId, function_id: functionId, kind, dry_run } = replay;
      const input: FunctionReplayInput = { projectId, replayId };
      const { workflow, attribute, what, many } = KINDS[kind];
      await client.workflow.signalWithStart(workflow, {
        workflowId: replayWorkflowId(replay),
        taskQueue,
        args: [input],
        signal: REPLAY_CHANGED,
        typedSearchAttributes: [
          { key: searchAttributes.kind, value: attribute },
          { key: searchAttributes.project, value: projectId },
          { key: searchAttributes.function, value: functionId },
        ],
        staticSummary: shortened(
          dry_run
            ? `Count for how many ${what} ${called(replay)} would run`
            : `Run ${called(replay)} for ${many}`,
        ),
      });
    },
    async startNotice(notice, about) {
      const { event, projectId, functionId } = notice;
      try {
        await client.workflow.start(NOTICE, {
          workflowId: `${functionId}-${event}-${about}`,
          workflowIdReusePolicy: 'REJECT_DUPLICATE',
          taskQueue,
          args: [notice],
          typedSearchAttributes: [
            { key: searchAttributes.kind, value: NOTICE_KIND },
            { key: searchAttributes.project, value: projectId },
            { key: searchAttributes.function, value: functionId },
          ],
          staticSummary: `Tell of ${event}`,
        });
        return true;
      } catch (error) {
        if (error instanceof WorkflowExecutionAlreadyStartedError) return false;
        throw error;
      }
    },
  };
}
