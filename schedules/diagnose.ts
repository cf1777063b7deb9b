import { Client, Connection, ScheduleNotFoundError } from '@temporalio/client';
import type { Finding } from '../tenancy/product.ts';
import { searchAttributes } from '../workflows/names.ts';
import { connectionSettings } from './connection.ts';
import { MAINTENANCE_SCHEDULE } from './maintenance.ts';
import type { SchedulesOptions } from './schedules.ts';

const DEADLINE_MILLISECONDS = 5_000;
const NOT_FOUND = 5;
const WORKFLOW_QUEUE = 1;

const finding = (check: string, ok: boolean, sentence: string): Finding => ({ check, ok, sentence });

async function lookAtNamespace(connection: Connection, namespace: string): Promise<Finding> {
  try {
    await connection.workflowService.describeNamespace({ namespace });
    return finding('Temporal namespace', true, `The namespace ${namespace} exists.`);
  } catch (error) {
    if ((error as { code?: number }).code !== NOT_FOUND) throw error;
    return finding(
      'Temporal namespace',
      false,
      `The namespace ${namespace} (TEMPORAL_NAMESPACE) does not exist. Create it or set another one.`,
    );
  }
}

async function lookAtSearchAttributes(connection: Connection, namespace: string): Promise<Finding> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
  const missing = Object.values(searchAttributes)
    .map((key) => key.name)
    .filter((name) => !(name in (customAttributes ?? {})));
  return finding(
    'search attributes',
    missing.length === 0,
    missing.length === 0
      ? 'The search attributes are registered.'
      : `The search attributes ${missing.join(', ')} are missing. A worker registers them when it starts.`,
  );
}

async function lookAtMaintenance(client: Client): Promise<Finding> {
  try {
    const { state, info } = await client.schedule.getHandle(MAINTENANCE_SCHEDULE).describe();
    if (state.paused) {
      return finding(
        'maintenance',
        false,
        'The maintenance schedule is paused. A running worker resumes it within a minute.',
      );
    }
    const last = info.recentActions.at(-1)?.takenAt.toISOString();
    return finding('maintenance', true, `The maintenance schedule runs${last ? `, last at ${last}` : ''}.`);
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error;
    return finding(
      'maintenance',
      false,
      'The maintenance schedule is missing. A worker creates it when it starts.',
    );
  }
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

/** Checks everything that Sluice needs from Temporal. Never fails: problems are in the findings. */
export async function diagnoseTemporal(options: SchedulesOptions): Promise<Finding[]> {
  const connection = Connection.lazy({ ...connectionSettings(options), connectTimeout: '3 seconds' });
  const client = new Client({ connection, namespace: options.TEMPORAL_NAMESPACE });
  try {
    return await connection.withDeadline(Date.now() + DEADLINE_MILLISECONDS, async () => {
      const namespace = await lookAtNamespace(connection, options.TEMPORAL_NAMESPACE);
      const found = [
        finding('Temporal', true, `Temporal answers at ${options.TEMPORAL_ADDRESS}.`),
        namespace,
      ];
      if (!namespace.ok) return found;
      return [
        ...found,
        await lookAtSearchAttributes(connection, options.TEMPORAL_NAMESPACE),
        await lookAtMaintenance(client),
        await lookAtWorkers(connection, options),
      ];
    });
  } catch (error) {
    return [
      finding(
        'Temporal',
        false,
        `Temporal does not answer at ${options.TEMPORAL_ADDRESS} (${(error as Error).message}). Exports wait until it ` +
          'does; capture keeps working. Start Temporal, or correct TEMPORAL_ADDRESS.',
      ),
    ];
  } finally {
    await connection.close();
  }
}
