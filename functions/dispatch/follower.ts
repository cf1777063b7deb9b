import type { Queryable } from '../../db/pool.ts';
import type { Logger } from '../../telemetry/logger.ts';
import {
  type Answer,
  type NewBatch,
  noteBatchSql,
  reactingSql,
  readAnswer,
  type Skipped,
} from '../rows/batches.ts';
import type { Glance } from './exclusion.ts';
import { isUnwanted, type Look } from './sieve.ts';
import { Sieves } from './sieves.ts';

/** The channel on which processes tell that there are new events for functions. */
export const NEW_EVENTS = 'sluice_function_events';

/** Notifications of one process follow each other at this distance at least, in milliseconds. */
const EVERY = 25;

export interface FollowerDependencies {
  /** Reads functions, and notifies the workers: never within the transaction that stores events. */
  pool: Queryable;
  logger: Pick<Logger, 'warn'>;
}

/** Notes, in the transactions that store events, what functions have to see. It is what capture calls an event follower. */
export function createFollower({ pool, logger }: FollowerDependencies) {
  const sieves = new Sieves(pool, logger);
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
    look: (projectId: number, event: Glance) => sieves.look(projectId, event),
    read(text: string) {
      const answer = readAnswer(text);
      sieves.expect(answer.projects);
      return {
        follows: (projectId: number) => answer.projects.has(projectId),
        isUnwanted: (look: Look, person: { mode: string; properties: string }) =>
          answer.projects.get(look.projectId) === look.version && isUnwanted(look, person),
        note: (events: Omit<NewBatch, 'skipped'> & { unwanted: readonly Look[] }) => noteOf(events, answer),
      };
    },
    committed() {
      if (isPlanned) return;
      isPlanned = true;
      setTimeout(tell, Math.max(0, last + EVERY - performance.now()));
    },
  };
}

/** The statement that notes events. Undefined: there is nothing to note. */
function noteOf(
  { unwanted, ...events }: Omit<NewBatch, 'skipped'> & { unwanted: readonly Look[] },
  answer: Answer,
): string | undefined {
  const counts = new Map<Look | string, Skipped>();
  for (const look of unwanted) {
    if (!look.isCounted) continue;
    // Events that nobody can want share a look.
    let count = counts.get(look);
    if (!count) {
      const { projectId: project, name } = look;
      const key = `${project}:${name ?? ''}:${name === null}`;
      count = counts.get(key) ?? { project, name, count: 0 };
      counts.set(key, count);
      if (look.persons.length === 0) counts.set(look, count);
    }
    count.count += 1;
  }
  const skipped = [...new Set(counts.values())];
  return events.count + skipped.length === 0 ? undefined : noteBatchSql({ ...events, skipped }, answer);
}
