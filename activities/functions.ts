import { deliveryBacklog, dispatchBacklog } from '../functions/runs/backlog.ts';
import { type NoticeRunDependencies, sendFunctionNotice } from '../functions/runs/notices.ts';
import {
  beginReplay,
  type EndReplayInput,
  endReplay,
  type ReplayRunDependencies,
  replayPages,
} from '../functions/runs/replays.ts';
import type { FunctionNotice, ReplayReference } from '../functions/temporal.ts';
import { inActivity } from './work.ts';

/** Makes the activities of functions. Their names are in the histories of workflows, so they must not change. */
export function createFunctionActivities({
  functions: deps,
}: {
  functions: ReplayRunDependencies & NoticeRunDependencies;
}) {
  return {
    beginReplay: (input: ReplayReference) => inActivity((work) => beginReplay(deps, input, work)),
    replayPages: (input: ReplayReference) => inActivity((work) => replayPages(deps, input, work)),
    dispatchBacklog: () => inActivity(() => dispatchBacklog(deps)),
    deliveryBacklog: () => inActivity(() => deliveryBacklog(deps)),
    // The id of the workflow is the same for every try, so it is the idempotency key.
    sendFunctionNotice: (input: FunctionNotice) =>
      inActivity((_, { info }) =>
        sendFunctionNotice(deps, input, info.workflowExecution?.workflowId ?? input.functionId),
      ),
    endReplay: (input: EndReplayInput) => inActivity(() => endReplay(deps, input)),
  };
}
