import net from 'node:net';
import { status } from '@grpc/grpc-js';
import { Client, Connection } from '@temporalio/client';
import { optionalTsToMs, type Timestamp } from '@temporalio/common/lib/time.js';
import type { Finding } from '../tenancy/product.ts';
import { codeOf, detailsOf, isDenied } from './answers.ts';
import { connectionSettings } from './connection.ts';
import { findOutOfStep } from './exports/firings.ts';
import type { SchedulesOptions } from './schedules.ts';
import { commandToRegister, missingSearchAttributes, whatIsMissing } from './search-attributes.ts';
import { describeUpkeep, upkeepId } from './upkeep.ts';

const DEADLINE_MILLISECONDS = 10_000;
const KNOCK_MILLISECONDS = 2_000;
const WORKFLOW_QUEUE = 1;
/** From this attempt on, a workflow task has failed more than by chance, such as when its worker was killed. */
const FAILING_ATTEMPTS = 3;
const MOST_LOOKED_AT = 300;
const AT_ONCE = 20;
const MOST_NAMED = 5;

const finding = (check: string, ok: boolean, sentence: string): Finding => ({ check, ok, sentence });

async function lookAtNamespace(connection: Connection, namespace: string): Promise<Finding> {
  try {
    await connection.workflowService.describeNamespace({ namespace });
    return finding('Temporal namespace', true, `The namespace ${namespace} exists.`);
  } catch (error) {
    if (codeOf(error) !== status.NOT_FOUND) throw error;
    return finding(
      'Temporal namespace',
      false,
      `The namespace ${namespace} (TEMPORAL_NAMESPACE) does not exist. Create it or set another one.`,
    );
  }
}

async function lookAtSearchAttributes(connection: Connection, options: SchedulesOptions): Promise<Finding> {
  const missing = await missingSearchAttributes(connection, options.TEMPORAL_NAMESPACE);
  return finding(
    'search attributes',
    missing.length === 0,
    missing.length === 0
      ? 'The search attributes are registered.'
      : `${whatIsMissing(missing, options)} A worker registers them when it starts, where Temporal lets it. Otherwise do it with: ${commandToRegister(missing, options)}`,
  );
}

/** Upkeep whose next step, or one of whose activities, has waited for longer than this hangs. */
const HANGS = 5 * 60_000;

async function lookAtMaintenance(client: Client, options: SchedulesOptions, hangs: number): Promise<Finding> {
  const check = 'maintenance';
  const found = await describeUpkeep(client, upkeepId('maintenance', options.SLUICE_TASK_QUEUE));
  if (!found) {
    return finding(
      check,
      false,
      'Maintenance does not run in Temporal. A running worker starts it within a minute.',
    );
  }
  const { pendingWorkflowTask, pendingActivities } = found.raw;
  const isOld = (time: number | undefined): time is number => time !== undefined && Date.now() - time > hangs;
  const at = (time: Timestamp | null | undefined) => optionalTsToMs(time);
  const scheduled = at(pendingWorkflowTask?.originalScheduledTime);
  if (isOld(scheduled)) {
    return finding(
      check,
      false,
      `Maintenance waits for a worker since ${new Date(scheduled).toISOString()}. Start one with \`npm run worker\`.`,
    );
  }
  const hanging = (pendingActivities ?? []).filter((one) =>
    isOld(at(one.lastStartedTime ?? one.scheduledTime)),
  );
  if (hanging.length > 0) {
    const names = hanging.map(({ activityType, attempt }) => `${activityType?.name} (attempt ${attempt})`);
    return finding(
      check,
      false,
      `Maintenance runs, but these steps have not ended for minutes: ${names.join(', ')}. The log of the workers says more.`,
    );
  }
  return finding(check, true, `Maintenance runs: the workflow ${found.workflowId}.`);
}

async function lookAtWorkers(connection: Connection, options: SchedulesOptions): Promise<Finding> {
  const { pollers } = await connection.workflowService.describeTaskQueue({
    namespace: options.TEMPORAL_NAMESPACE,
    taskQueue: { name: options.SLUICE_TASK_QUEUE },
    taskQueueType: WORKFLOW_QUEUE,
  });
  const count = pollers?.length ?? 0;
  return finding(
    'workers',
    count > 0,
    count > 0
      ? `${count} worker${count > 1 ? 's poll' : ' polls'} the task queue ${options.SLUICE_TASK_QUEUE}.`
      : `No worker polls the task queue ${options.SLUICE_TASK_QUEUE}, so no exports run. Start one with \`npm run worker\`.`,
  );
}

/**
 * Looks for workflows whose task fails again and again. They stand still, and Temporal's lists show them as running. Not all
 * servers can search for them, so this asks for some hundreds of those that run.
 */
async function lookAtTasks(
  client: Client,
  connection: Connection,
  options: SchedulesOptions,
): Promise<Finding> {
  const { TEMPORAL_NAMESPACE: namespace, SLUICE_TASK_QUEUE: taskQueue } = options;
  const query = `TaskQueue = '${taskQueue}' and ExecutionStatus = 'Running'`;
  const broken: { workflowId: string; type: string; attempt: number }[] = [];
  let seen = 0;
  const waiting: Promise<void>[] = [];
  let fault: unknown;
  /** A workflow that has ended since the list does not stand still. Another error ends the look, after the requests under way. */
  const note = (error: unknown) => {
    if (codeOf(error) !== status.NOT_FOUND) fault ??= error;
  };
  const look = async ({ workflowId, runId, type }: { workflowId: string; runId: string; type: string }) => {
    const { pendingWorkflowTask } = await connection.workflowService.describeWorkflowExecution({
      namespace,
      execution: { workflowId, runId },
    });
    const attempt = pendingWorkflowTask?.attempt ?? 0;
    if (attempt >= FAILING_ATTEMPTS) broken.push({ workflowId, type, attempt });
  };
  for await (const one of client.workflow.list({ query, pageSize: AT_ONCE })) {
    seen += 1;
    waiting.push(look(one).catch(note));
    if (waiting.length === AT_ONCE) await Promise.all(waiting.splice(0));
    if (seen === MOST_LOOKED_AT || fault !== undefined) break;
  }
  await Promise.all(waiting);
  if (fault !== undefined) throw fault;
  if (broken.length === 0)
    return finding('workflow tasks', true, `The tasks of ${seen} running workflows do not fail.`);
  const named = broken
    .slice(0, MOST_NAMED)
    .map(({ workflowId, type, attempt }) => `${workflowId} (${type}, attempt ${attempt})`);
  const more = broken.length > MOST_NAMED ? ` and ${broken.length - MOST_NAMED} more` : '';
  return finding(
    'workflow tasks',
    false,
    `${broken.length} of ${seen} running workflows stand still, because their tasks fail again and again: ${named.join(', ')}${more}. The log of the workers and the pages of these workflows say why. Usually a worker of another version polls ${taskQueue}: stop it, and they go on.`,
  );
}

/** Compares when Temporal starts the next runs of days and weeks with when these end. */
async function lookAtFirings(client: Client, options: SchedulesOptions): Promise<Finding> {
  const check = 'firing times';
  const found = await findOutOfStep(client, options.SLUICE_TASK_QUEUE, MOST_LOOKED_AT).catch((error) => {
    // There are no schedules of exports without search attributes, and another check says that these are missing.
    if (codeOf(error) !== status.INVALID_ARGUMENT) throw error;
    return { seen: 0, differences: [] };
  });
  const { seen, differences } = found;
  if (differences.length === 0)
    return finding(
      check,
      true,
      `The schedules of daily and weekly exports fire when their intervals end (${seen} looked at).`,
    );
  const named = differences.slice(0, MOST_NAMED).map(({ scheduleId, what }) => `${scheduleId}: ${what}`);
  const more = differences.length > MOST_NAMED ? `; and ${differences.length - MOST_NAMED} more` : '';
  return finding(
    check,
    false,
    `Of ${seen} schedules of daily and weekly exports, ${differences.length} do not fire when their intervals end: ${named.join('; ')}${more}. A running worker corrects schedules within minutes. If that does not help, Temporal does not keep to the clocks that Sluice gives it.`,
  );
}

/** A check, and what it means if Temporal denies it. */
interface Look {
  check: string;
  look(): Promise<Finding>;
  /** Whether Sluice works without the right to see this. */
  mayBeDenied: boolean;
  what: string;
}

/** Checks everything that Sluice needs from Temporal. Never fails: problems are in the findings. */
export async function diagnoseTemporal(options: SchedulesOptions, hangs = HANGS): Promise<Finding[]> {
  const { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace } = options;
  const connection = Connection.lazy({ ...connectionSettings(options), connectTimeout: '3 seconds' });
  const client = new Client({ connection, namespace });
  const looks: Look[] = [
    {
      check: 'Temporal namespace',
      look: () => lookAtNamespace(connection, namespace),
      ...{ mayBeDenied: true, what: `describing the namespace ${namespace}` },
    },
    {
      check: 'search attributes',
      look: () => lookAtSearchAttributes(connection, options),
      ...{ mayBeDenied: false, what: 'listing and searching workflows' },
    },
    {
      check: 'maintenance',
      look: () => lookAtMaintenance(client, options, hangs),
      ...{ mayBeDenied: false, what: 'describing workflows' },
    },
    {
      check: 'firing times',
      look: () => lookAtFirings(client, options),
      ...{ mayBeDenied: true, what: 'listing and reading schedules' },
    },
    {
      check: 'workers',
      look: () => lookAtWorkers(connection, options),
      ...{ mayBeDenied: true, what: 'describing task queues' },
    },
    {
      check: 'workflow tasks',
      look: () => lookAtTasks(client, connection, options),
      ...{ mayBeDenied: true, what: 'describing workflows' },
    },
  ];
  const found: Finding[] = [];
  try {
    await connection.withDeadline(Date.now() + DEADLINE_MILLISECONDS, async () => {
      await connection.workflowService.getSystemInfo({});
      found.push(finding('Temporal', true, `Temporal answers at ${address}.`));
      for (const one of looks) {
        const result = await one.look().catch((error) => denied(error, one));
        found.push(result);
        // Without a namespace there is nothing else.
        if (one.check === 'Temporal namespace' && !result.ok) return;
      }
    });
  } catch (error) {
    found.push(finding('Temporal', false, await whyNot(error, address ?? '')));
  } finally {
    await connection.close();
  }
  return found;
}

function denied(error: unknown, { check, mayBeDenied, what }: Look): Finding {
  if (!isDenied(error)) throw error;
  const sentence = `Temporal denies ${what} (${detailsOf(error)}).`;
  return mayBeDenied
    ? finding(check, true, `${sentence} So this is not checked. Sluice works without it.`)
    : finding(check, false, `${sentence} Exports need it: give the credentials of Sluice this right.`);
}

async function whyNot(error: unknown, address: string): Promise<string> {
  const meanwhile = 'Exports wait until then; capture keeps working.';
  const details = detailsOf(error);
  if (isDenied(error)) {
    return `Temporal answers at ${address}, but denies access (${details}). ${meanwhile} Correct TEMPORAL_API_KEY, TEMPORAL_TLS_CERT or TEMPORAL_NAMESPACE.`;
  }
  return (await accepts(address))
    ? `${address} accepts connections, but no Temporal answers there (${details}). ${meanwhile} Look at the load of Temporal and its database, or correct TEMPORAL_ADDRESS or TEMPORAL_TLS.`
    : `Temporal does not answer at ${address} (${details}). ${meanwhile} Start Temporal, or correct TEMPORAL_ADDRESS.`;
}

/** Whether anything listens at an address. */
function accepts(address: string): Promise<boolean> {
  const [host, port] = address.split(':');
  return new Promise((resolve) => {
    const socket = net.connect({ host, port: Number(port), timeout: KNOCK_MILLISECONDS });
    const over = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', () => over(true));
    socket.once('timeout', () => over(false));
    socket.once('error', () => over(false));
  });
}
