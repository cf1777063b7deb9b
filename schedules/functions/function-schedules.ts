import type { Client } from '@temporalio/client';
import type { FunctionReplayInput, FunctionTemporal } from '../../functions/temporal.ts';
import {
  BROADCAST_KIND,
  FUNCTION_BROADCAST,
  FUNCTION_REPLAY,
  FUNCTION_RERUN,
  REPLAY_CHANGED,
  REPLAY_KIND,
  RERUN_KIND,
  searchAttributes,
} from '../../workflows/names.ts';

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
        staticSummary: dry_run
          ? `Count for how many ${what} function ${functionId} would run`
          : `Run function ${functionId} for ${many}`,
      });
    },
  };
}
