import {
  type Client,
  ScheduleAlreadyRunning,
  type ScheduleDescription,
  ScheduleNotFoundError,
  type ScheduleOptions,
  ScheduleOverlapPolicy,
  type ScheduleSpec,
  type ScheduleSpecDescription,
} from '@temporalio/client';
import type { SearchAttributePair, TypedSearchAttributes } from '@temporalio/common';
import { searchAttributes } from '../workflows/names.ts';

/** A schedule of the installation itself, which runs a workflow again and again. */
export interface OwnSchedule {
  scheduleId: string;
  workflowType: string;
  kind: string;
  every: keyof typeof MILLISECONDS;
  /** Temporal ends a run that takes longer. */
  longest: keyof typeof MILLISECONDS;
  summary: string;
}

const MILLISECONDS = {
  '1 minute': 60_000,
  '5 minutes': 300_000,
  '10 minutes': 600_000,
  '1 hour': 3_600_000,
} as const;

/**
 * Creates the schedule if it is missing, and corrects it if it is paused or differs from what this version needs. A schedule
 * that is right is not touched: an update makes the server forget what it was about to do.
 */
export async function ensureOwnSchedule(
  client: Client,
  taskQueue: string,
  own: OwnSchedule,
  { isComplete }: { isComplete: boolean },
): Promise<void> {
  const { scheduleId } = own;
  const wanted = scheduleOf(own, taskQueue, isComplete);
  const handle = client.schedule.getHandle(scheduleId);
  const found = await handle.describe().catch((error) => {
    if (!(error instanceof ScheduleNotFoundError)) throw error;
    return undefined;
  });
  if (!found) {
    await client.schedule
      .create({ scheduleId, ...wanted, state: { triggerImmediately: true } })
      .catch((error) => {
        // Another worker was quicker.
        if (!(error instanceof ScheduleAlreadyRunning)) throw error;
      });
  } else if (essence(wanted) !== essence(found) || found.state.remainingActions !== undefined) {
    await handle.update(() => ({ ...wanted, state: { paused: false } }));
  } else if (found.state.paused) await handle.unpause();
}

function scheduleOf(own: OwnSchedule, taskQueue: string, isComplete: boolean) {
  const typedSearchAttributes = isComplete ? [{ key: searchAttributes.kind, value: own.kind }] : [];
  return {
    spec: { intervals: [{ every: MILLISECONDS[own.every] }] } as ScheduleSpec,
    action: {
      type: 'startWorkflow' as const,
      workflowType: own.workflowType,
      workflowId: own.scheduleId,
      taskQueue,
      workflowExecutionTimeout: MILLISECONDS[own.longest],
      typedSearchAttributes,
      staticSummary: own.summary,
    },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: MILLISECONDS['1 minute'] },
    typedSearchAttributes,
  } satisfies Omit<ScheduleOptions, 'scheduleId'>;
}

type Wanted = ReturnType<typeof scheduleOf>;

/** Writes what matters of a schedule as a text, to compare it. */
function essence(schedule: Wanted | ScheduleDescription): string {
  const { action, policies, typedSearchAttributes } = schedule;
  const spec: Wanted['spec'] | ScheduleSpecDescription = schedule.spec;
  return JSON.stringify([
    (spec.intervals ?? []).map(({ every, offset }) => [Number(every), Number(offset ?? 0)]),
    [spec.calendars?.length ?? 0, Number(spec.jitter ?? 0), spec.startAt ?? null, spec.endAt ?? null],
    [action.workflowType, action.workflowId, action.taskQueue, action.staticSummary],
    [Number(action.workflowExecutionTimeout), policies.overlap, Number(policies.catchupWindow)],
    [pairsOf(typedSearchAttributes), pairsOf(action.typedSearchAttributes)],
  ]);
}

function pairsOf(attributes: SearchAttributePair[] | TypedSearchAttributes | undefined): string[] {
  const pairs = Array.isArray(attributes) ? attributes : (attributes?.getAll() ?? []);
  return pairs.map(({ key, value }) => `${key.name}=${String(value)}`).sort();
}
