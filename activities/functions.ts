import { deliveryBacklog, dispatchBacklog } from '../functions/runs/backlog.ts';
import {
  beginReplay,
  type EndReplayInput,
  endReplay,
  type ReplayRunDependencies,
  replayPages,
} from '../functions/runs/replays.ts';
import type { ReplayReference } from '../functions/temporal.ts';
import { inActivity } from './work.ts';

/** Makes the activities of functions. Their names are in the histories of workflows, so they must not change. */
export function createFunctionActivities({ functions: deps }: { functions: ReplayRunDependencies }) {
  return {
    beginReplay: (input: ReplayReference) => inActivity((work) => beginReplay(deps, input, work)),
    replayPages: (input: ReplayReference) => inActivity((work) => replayPages(deps, input, work)),
    dispatchBacklog: () => inActivity(() => dispatchBacklog(deps)),
    deliveryBacklog: () => inActivity(() => deliveryBacklog(deps)),
    endReplay: (input: EndReplayInput) => inActivity(() => endReplay(deps, input)),
  };
}
