import type { Client } from '@temporalio/client';
import type { FlagTemporal, Plan, PlanReference } from '../../flags/temporal.ts';
import {
  FLAG_CHANGE,
  FLAG_CHANGE_KIND,
  FLAG_ROLLOUT,
  FLAG_ROLLOUT_KIND,
  PLAN_CHANGED,
  searchAttributes,
} from '../../workflows/names.ts';

export interface FlagSchedulesOptions {
  taskQueue: string;
  isReachable(): boolean;
  within<T>(milliseconds: number, work: () => Promise<T>): Promise<T>;
}

export const planWorkflowId = ({ kind, planId }: Pick<Plan, 'kind' | 'planId'>): string =>
  `flag-${kind}-${planId}`;

const OF_KIND = {
  change: { type: FLAG_CHANGE, kind: FLAG_CHANGE_KIND, does: 'A scheduled change of' },
  rollout: { type: FLAG_ROLLOUT, kind: FLAG_ROLLOUT_KIND, does: 'A gradual rollout of' },
} as const;

/** Implements with Temporal's client what feature flags need from Temporal. */
export function createFlagSchedules(
  client: Client,
  { taskQueue, isReachable, within }: FlagSchedulesOptions,
): FlagTemporal {
  return {
    isReachable,
    within,
    async stir(plan) {
      const { projectId, planId, flagId } = plan;
      const { type, kind, does } = OF_KIND[plan.kind];
      const input: PlanReference = { projectId, planId };
      await client.workflow.signalWithStart(type, {
        workflowId: planWorkflowId(plan),
        taskQueue,
        args: [input],
        signal: PLAN_CHANGED,
        typedSearchAttributes: [
          { key: searchAttributes.kind, value: kind },
          { key: searchAttributes.project, value: projectId },
        ],
        staticSummary: `${does} feature flag ${flagId}`,
      });
    },
  };
}
