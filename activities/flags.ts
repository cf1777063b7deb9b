import {
  cancelRollout,
  carryOutChange,
  endChange,
  type PlanRunDependencies,
  stepRollout,
} from '../flags/runs/plans.ts';
import type { PlanReference } from '../flags/temporal.ts';
import { inActivity } from './work.ts';

/** Makes the activities of feature flags. Their names are in the histories of workflows, so they must not change. */
export function createFlagActivities({ flags: deps }: { flags: PlanRunDependencies }) {
  return {
    carryOutFlagChange: (input: PlanReference) => inActivity(() => carryOutChange(deps, input)),
    endFlagChange: (input: PlanReference) => inActivity(() => endChange(deps, input)),
    stepFlagRollout: (input: PlanReference) => inActivity(() => stepRollout(deps, input)),
    cancelFlagRollout: (input: PlanReference) => inActivity(() => cancelRollout(deps, input)),
  };
}
