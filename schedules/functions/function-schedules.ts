import type { Client } from '@temporalio/client';
import type { FunctionReplayInput, FunctionTemporal } from '../../functions/temporal.ts';
import {
  BROADCAST_KIND,
  FUNCTION_BROADCAST,
  FUNCTION_REPLAY,
  REPLAY_CHANGED,
  REPLAY_KIND,
  searchAttributes,
} from '../../workflows/names.ts';

export interface FunctionSchedulesOptions {
  taskQueue: string;
  isReachable(): boolean;
  within<T>(milliseconds: number, work: () => Promise<T>): Promise<T>;
}

export const replayWorkflowId = ({ kind, id }: { kind: string; id: string }): string =>
  `function-${kind}-${id}`;

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
      const isReplay = kind === 'replay';
      const what = isReplay ? 'events' : 'persons';
      await client.workflow.signalWithStart(isReplay ? FUNCTION_REPLAY : FUNCTION_BROADCAST, {
        workflowId: replayWorkflowId(replay),
        taskQueue,
        args: [input],
        signal: REPLAY_CHANGED,
        typedSearchAttributes: [
          { key: searchAttributes.kind, value: isReplay ? REPLAY_KIND : BROADCAST_KIND },
          { key: searchAttributes.project, value: projectId },
          { key: searchAttributes.function, value: functionId },
        ],
        staticSummary: dry_run
          ? `Count for how many ${what} function ${functionId} would run`
          : `Run function ${functionId} for ${isReplay ? 'past events' : 'persons'}`,
      });
    },
  };
}
