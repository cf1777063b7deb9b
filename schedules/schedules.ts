import { Client, Connection } from '@temporalio/client';
import type { Config } from '../config.ts';
import type { ExportTemporal } from '../exports/temporal.ts';
import type { Logger } from '../telemetry/logger.ts';
import { closableCalls } from './closable-calls.ts';
import { connectionSettings, type TemporalSettings } from './connection.ts';
import { createExportSchedules } from './exports/export-schedules.ts';
import { ensureMaintenance, MAINTENANCE_SCHEDULE } from './maintenance.ts';
import { registerSearchAttributes } from './search-attributes.ts';
import { stopProject } from './stop-project.ts';

/** The one Temporal client of Sluice. The database is the truth; schedules are derived from it and repaired. */
export interface Schedules {
  /** Whether Temporal answered when it was last asked. */
  isReachable(): boolean;
  /** Asks Temporal whether it is there, for a process that cannot wait until it has been asked. Takes seconds if it is away. */
  reach(): Promise<boolean>;
  /** Brings search attributes and the maintenance schedule to what this version needs. */
  ensure(): Promise<void>;
  /** Runs maintenance now rather than within a minute. Never fails: maintenance comes by itself. */
  nudgeMaintenance(): void;
  /** Deletes a project's schedules and terminates its workflows. */
  stopProject(projectId: number): Promise<{ schedules: number; workflows: number }>;
  /** One schedule for each batch export, and what is started beside it. */
  exports: ExportTemporal;
  /** Gives what is asked of Temporal within `work` so long, also while it is away; closing waits for it. */
  within<T>(milliseconds: number, work: () => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export type SchedulesOptions = TemporalSettings &
  Pick<Config, 'SLUICE_TASK_QUEUE' | 'TEMPORAL_UI_URL' | 'SLUICE_TEMPORAL_UI_PORT'>;

const PROBE_EVERY = 5_000;
/** Also how long a process that stops waits for an absent Temporal. */
const PROBE_DEADLINE = 2_000;
/** After a long absence, too, Temporal is found again within seconds; the client's own idea is two minutes. */
const LONGEST_BACKOFF = 5_000;

/** Connects lazily: Temporal may be absent now and come up later. */
export function createSchedules(options: SchedulesOptions, logger: Logger): Schedules {
  const closing = new AbortController();
  const closed = new AbortController();
  const connection = Connection.lazy({
    ...connectionSettings(options),
    connectTimeout: '5 seconds',
    channelArgs: { 'grpc.max_reconnect_backoff_ms': LONGEST_BACKOFF },
    interceptors: closableCalls(closed.signal),
  });
  const client = new Client({ connection, namespace: options.TEMPORAL_NAMESPACE });
  const underWay = new Set<Promise<unknown>>();
  let reachable = false;

  async function probe(): Promise<void> {
    try {
      await connection.withDeadline(Date.now() + PROBE_DEADLINE, () =>
        connection.workflowService.getSystemInfo({}),
      );
      if (!reachable) logger.debug('Temporal is reachable');
      reachable = true;
    } catch (error) {
      if (reachable && !closing.signal.aborted) logger.warn({ err: error }, 'Temporal is not reachable');
      reachable = false;
    }
  }
  let pending = probe();
  const timer = setInterval(() => {
    pending = pending.then(probe);
  }, PROBE_EVERY);
  timer.unref();

  const isReachable = () => reachable;

  async function reach(): Promise<boolean> {
    await pending;
    // The first connection may take longer than an answer does.
    if (!reachable) await probe();
    return reachable;
  }

  async function within<T>(milliseconds: number, work: () => Promise<T>): Promise<T> {
    const asked = connection.withDeadline(Date.now() + milliseconds, work);
    const over = asked.then(
      () => undefined,
      () => undefined,
    );
    underWay.add(over);
    try {
      return await asked;
    } finally {
      underWay.delete(over);
    }
  }

  return {
    isReachable,
    reach,
    within,
    async ensure() {
      const added = await registerSearchAttributes(connection, options.TEMPORAL_NAMESPACE);
      if (added.length > 0) logger.info({ added }, 'search attributes registered');
      await ensureMaintenance(client, options.SLUICE_TASK_QUEUE);
      reachable = true;
    },
    nudgeMaintenance() {
      client.schedule
        .getHandle(MAINTENANCE_SCHEDULE)
        .trigger()
        .catch((error) => logger.debug({ err: error }, 'maintenance not nudged; it runs within a minute'));
    },
    stopProject: (projectId) => stopProject(client, projectId),
    exports: createExportSchedules(client, {
      isReachable,
      within,
      taskQueue: options.SLUICE_TASK_QUEUE,
      namespace: options.TEMPORAL_NAMESPACE,
      uiUrl: options.TEMPORAL_UI_URL ?? `http://localhost:${options.SLUICE_TEMPORAL_UI_PORT}`,
    }),
    async close() {
      closing.abort();
      clearInterval(timer);
      // What has a deadline may end by itself; everything else is over now.
      await Promise.all([pending, ...underWay]);
      closed.abort();
      await connection.close();
    },
  };
}
