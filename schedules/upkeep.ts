import { type Client, type WorkflowExecutionDescription, WorkflowNotFoundError } from '@temporalio/client';
import { BACKLOG_KIND, MAINTENANCE, RECONCILE_KIND, searchAttributes, UPKEEP } from '../workflows/names.ts';
import type { UpkeepInput } from '../workflows/upkeep.ts';
import { isDenied } from './answers.ts';
import { isOwnSchedule } from './exports/drift.ts';
import { removeSchedule } from './exports/sync.ts';

/** What the installation does again and again: a workflow each, which never ends. */
const ALL: readonly { of: UpkeepInput['of']; name: string; kind: string; summary: string }[] = [
  {
    of: 'maintenance',
    name: 'maintenance',
    kind: MAINTENANCE,
    summary: 'Every minute: what no request does, such as expiry, deletions, repair',
  },
  {
    of: 'reconciliation',
    name: 'export-reconcile',
    kind: RECONCILE_KIND,
    summary: 'Every five minutes: whether every interval of every batch export was exported',
  },
  {
    of: 'dispatch',
    name: 'function-dispatch',
    kind: BACKLOG_KIND,
    summary: 'Every minute: stored events that functions have not seen yet',
  },
  {
    of: 'retries',
    name: 'function-retries',
    kind: BACKLOG_KIND,
    summary: 'Every minute: invocations of functions that wait',
  },
];

/** The schedules that did the same in older versions, by their ids. They started a workflow each time. */
const OLD_SCHEDULES = ALL.map(({ name }) => `sluice-${name}`);

/** Installations with task queues of their own share a namespace, so their workflows have ids of their own. */
export const upkeepId = (of: UpkeepInput['of'], taskQueue: string): string =>
  `${taskQueue}-${ALL.find((one) => one.of === of)?.name}`;

/**
 * Starts the workflows of upkeep that do not run, and removes the schedules of older versions. `isComplete`: the namespace has
 * all search attributes. Until then, the workflows do without.
 */
export async function ensureUpkeep(
  client: Client,
  taskQueue: string,
  { isComplete }: { isComplete: boolean },
): Promise<void> {
  for (const { of, kind, summary } of ALL) {
    const workflowId = upkeepId(of, taskQueue);
    const found = await describeUpkeep(client, workflowId).catch((error) => {
      // Starting one that runs changes nothing.
      if (!isDenied(error)) throw error;
      return undefined;
    });
    if (found && (!isComplete || found.typedSearchAttributes.get(searchAttributes.kind) === kind)) continue;
    const input: UpkeepInput = { of };
    await client.workflow.start(UPKEEP, {
      ...{ workflowId, taskQueue, args: [input], staticSummary: summary },
      typedSearchAttributes: isComplete ? [{ key: searchAttributes.kind, value: kind }] : [],
      // What runs without search attributes does not show in searches. Its rounds can be repeated.
      workflowIdConflictPolicy: found ? 'TERMINATE_EXISTING' : 'USE_EXISTING',
    });
  }
  // A worker of an older version makes them again each minute, for as long as it runs beside this one.
  for (const scheduleId of OLD_SCHEDULES) {
    if (await isOwnSchedule(client, scheduleId, taskQueue)) await removeSchedule(client, scheduleId);
  }
}

/** Describes the workflow of an upkeep, if it runs. */
export async function describeUpkeep(
  client: Client,
  workflowId: string,
): Promise<WorkflowExecutionDescription | undefined> {
  try {
    const found = await client.workflow.getHandle(workflowId).describe();
    return found.status.name === 'RUNNING' ? found : undefined;
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
    return undefined;
  }
}
