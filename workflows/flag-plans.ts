import {
  CancellationScope,
  condition,
  continueAsNew,
  defineSignal,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';
import type { PlanReference, PlanReport } from '../flags/temporal.ts';
import { PLAN_CHANGED } from './names.ts';

// Without an end: the row is the truth, and a plan is never given up because something is away.
const retry = { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '1 minute' } as const;
const { carryOutFlagChange, endFlagChange, stepFlagRollout, cancelFlagRollout } = proxyActivities<Activities>(
  { startToCloseTimeout: '1 minute', retry },
);

/** Changes a flag at a time. */
export const flagChange = (input: PlanReference): Promise<PlanReport> =>
  follow(input, {
    look: carryOutFlagChange,
    giveUp: endFlagChange,
    goOn: () => continueAsNew<typeof flagChange>(input),
  });

/** Changes the percentage of a condition set of a flag, step by step. */
export const flagRollout = (input: PlanReference): Promise<PlanReport> =>
  follow(input, {
    look: stepFlagRollout,
    giveUp: cancelFlagRollout,
    goOn: () => continueAsNew<typeof flagRollout>(input),
  });

interface Steps {
  /** Does what is due, and says when there is something to do again. */
  look(reference: PlanReference): Promise<PlanReport>;
  giveUp(reference: PlanReference): Promise<void>;
  goOn(): Promise<never>;
}

/** Does what the row of a plan says, when it says so. The row knows how far it is, so this can begin anew at any point. */
async function follow({ projectId, planId }: PlanReference, steps: Steps): Promise<PlanReport> {
  const reference = { projectId, planId };
  let isTold = false;
  setHandler(defineSignal(PLAN_CHANGED), () => {
    isTold = true;
  });
  try {
    for (;;) {
      isTold = false;
      const report = await steps.look(reference);
      setCurrentDetails(textOf(report));
      // What was told while it was looked at may be what it did not see.
      if (report.isOver && !isTold) return report;
      if (workflowInfo().continueAsNewSuggested) return await steps.goOn();
      if (report.wait === null) await condition(() => isTold);
      else await condition(() => isTold, report.wait);
    }
  } catch (error) {
    if (!isCancellation(error)) throw error;
    await CancellationScope.nonCancellable(() => steps.giveUp(reference));
    throw error;
  }
}

function textOf({ status, done, of, percentage, wait }: PlanReport): string {
  const reached = percentage === null ? '' : ` The percentage is ${percentage}.`;
  const next =
    wait === null ? '' : ` The next step is due ${new Date(Date.now() + wait).toISOString().slice(0, 19)}Z.`;
  return `**${status}** ${done} of ${of} steps.${reached}${next}`;
}
