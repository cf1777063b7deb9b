import { Client, Connection } from '@temporalio/client';
import type { Config } from '../config.ts';
import type { ExportTemporal } from '../exports/temporal.ts';
import type { FlagTemporal } from '../flags/temporal.ts';
import type { FunctionTemporal } from '../functions/temporal.ts';
import type { Logger } from '../telemetry/logger.ts';
import { UPKEEP_NOW } from '../workflows/names.ts';
import { isDenied } from './answers.ts';
import { closableCalls } from './closable-calls.ts';
import { connectionSettings, type TemporalSettings } from './connection.ts';
import { createExportSchedules } from './exports/export-schedules.ts';
import { createFlagSchedules } from './flags/flag-schedules.ts';
import { createFunctionSchedules } from './functions/function-schedules.ts';
import {
  cannotReadNamespace,
  commandToRegister,
  registerSearchAttributes,
  whatIsMissing,
} from './search-attributes.ts';
import { stopProject } from './stop-project.ts';
import { ensureUpkeep, upkeepId } from './upkeep.ts';

/** The Temporal client of a process. The database is the truth; schedules are derived from it and corrected. */
export interface Schedules {
  /** Answers whether Temporal answered the last call. */
  isReachable(): boolean;
  /** Calls Temporal to find out whether it answers. This takes seconds if it is away. */
  reach(): Promise<boolean>;
  /**
   * Registers the search attributes and starts the workflows of upkeep that do not run. Search attributes that somebody else has to
   * register are in the log, with the command. Without them exports wait, and maintenance runs all the same.
   */
  ensure(): Promise<void>;
  /** Runs maintenance now. Never fails, because maintenance runs within a minute anyway. */
  nudgeMaintenance(): void;
  /** Deletes a project's schedules and terminates its workflows. */
  stopProject(projectId: number): Promise<{ schedules: number; workflows: number }>;
  /** What batch exports need from Temporal. */
  exports: ExportTemporal;
  /** What functions need from Temporal. */
  functions: FunctionTemporal;
  /** What feature flags need from Temporal. */
  flags: FlagTemporal;
  /**
   * Runs `work`. Calls to Temporal within it fail after this time, also while Temporal is away. `close` waits for it.
   */
  within<T>(milliseconds: number, work: () => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export type SchedulesOptions = TemporalSettings &
  Pick<Config, 'SLUICE_TASK_QUEUE' | 'TEMPORAL_UI_URL' | 'SLUICE_TEMPORAL_UI_PORT'>;

const PROBE_EVERY = 5_000;
/** How long a probe may take. A process that stops waits for a probe in progress. */
const PROBE_DEADLINE = 2_000;
/** How often the client tries to reconnect at least. Its default of two minutes would be too long. */
const LONGEST_BACKOFF = 5_000;

/** Makes the client. It connects lazily, because Temporal may be away now and come back later. */
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
      const what = isDenied(error) ? 'Temporal denies access' : 'Temporal is not reachable';
      if (reachable && !closing.signal.aborted) logger.warn({ err: error }, what);
      reachable = false;
    }
  }

  /** What the log said last of search attributes: it says each thing once. */
  let said: string | undefined;
  /** Registers what is missing. Answers whether the namespace has all search attributes. */
  async function ensureSearchAttributes(): Promise<boolean> {
    const found = await registerSearchAttributes(connection, options.TEMPORAL_NAMESPACE).catch((err) => {
      if (!cannotReadNamespace(err)) throw err;
      // Without them Temporal refuses what comes next, and says which.
      logger.warn({ err }, 'search attributes could not be checked');
      return undefined;
    });
    if (!found) return true;
    const { added, missing, reason } = found;
    if (added.length > 0) logger.info({ added }, 'search attributes registered');
    const sentence =
      missing.length === 0
        ? undefined
        : `${whatIsMissing(missing, options)} Temporal does not let Sluice register them. Do it with: ${commandToRegister(missing, options)}`;
    if (sentence !== said) {
      if (sentence !== undefined) logger.warn({ reason }, sentence);
      else logger.info('the search attributes that were missing are registered');
      said = sentence;
    }
    return missing.length === 0;
  }
  let pending = probe();
  const timer = setInterval(() => {
    pending = pending.then(probe);
  }, PROBE_EVERY);
  timer.unref();

  const isReachable = () => reachable;

  async function reach(): Promise<boolean> {
    await pending;
    // The first probe may have failed because connecting took too long.
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
      const isComplete = await ensureSearchAttributes();
      await ensureUpkeep(client, options.SLUICE_TASK_QUEUE, { isComplete });
      reachable = true;
    },
    nudgeMaintenance() {
      client.workflow
        .getHandle(upkeepId('maintenance', options.SLUICE_TASK_QUEUE))
        .signal(UPKEEP_NOW)
        .catch((error) => logger.debug({ err: error }, 'maintenance not nudged; it runs within a minute'));
    },
    stopProject: (projectId) => stopProject(client, projectId),
    exports: createExportSchedules(client, {
      isReachable,
      within,
      logger,
      taskQueue: options.SLUICE_TASK_QUEUE,
      namespace: options.TEMPORAL_NAMESPACE,
      uiUrl: options.TEMPORAL_UI_URL ?? `http://localhost:${options.SLUICE_TEMPORAL_UI_PORT}`,
    }),
    functions: createFunctionSchedules(client, {
      isReachable,
      within,
      taskQueue: options.SLUICE_TASK_QUEUE,
    }),
    flags: createFlagSchedules(client, { isReachable, within, taskQueue: options.SLUICE_TASK_QUEUE }),
    async close() {
      closing.abort();
      clearInterval(timer);
      // Calls with a deadline may finish. All others end now.
      await Promise.all([pending, ...underWay]);
      closed.abort();
      await connection.close();
    },
  };
}
