import type { Queryable } from '../../db/pool.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { type NewBatch, noteBatchSql, reactingProjects, reactingSql } from '../rows/batches.ts';

/** The channel on which processes tell that there are new events for functions. */
export const NEW_EVENTS = 'sluice_function_events';

/** Notifications of one process follow each other at this distance at least, in milliseconds. */
const EVERY = 25;

export interface FollowerDependencies {
  /** Notifies the workers: never within the transaction that stores events. */
  pool: Queryable;
  logger: Pick<Logger, 'warn'>;
}

/** Notes, in the transactions that store events, what functions have to see. It is what capture calls an event follower. */
export function createFollower({ pool, logger }: FollowerDependencies) {
  let isPlanned = false;
  let last = 0;
  const tell = () => {
    isPlanned = false;
    last = performance.now();
    // Without it, workers look for new events every second.
    pool.query(`select pg_notify('${NEW_EVENTS}', '')`).catch((error: unknown) => {
      logger.warn({ err: error }, 'workers could not be told of new events');
    });
  };
  return {
    question: (projectIds: readonly number[]) => reactingSql(projectIds, new Date()),
    projects: (answer: string) => reactingProjects(answer),
    note: (events: NewBatch, answer: string) => noteBatchSql(events, answer),
    committed() {
      if (isPlanned) return;
      isPlanned = true;
      setTimeout(tell, Math.max(0, last + EVERY - performance.now()));
    },
  };
}
