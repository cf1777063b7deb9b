import { addIngestionWarnings, type NewIngestionWarning } from '../db/ingestion-warnings.ts';
import type { Queryable } from '../db/pool.ts';
import type { Logger } from '../telemetry/logger.ts';
import { effectOf, type Notices } from './parse/notices.ts';

export interface Warnings {
  /** Counts the notices of one request in memory. */
  add(projectId: number, notices: Notices, now: number): void;
  /** Writes the counts so far. When it resolves, they are in the table. */
  flush(): Promise<void>;
  /** Writes the remaining counts and stops. */
  close(): Promise<void>;
}

const FLUSH_EVERY = 1_000;
/** While Postgres is down, the counts of this many projects and reasons are kept. */
const MOST_KEPT = 10_000;

/**
 * Collects ingestion warnings in memory and writes them once a second. A client that sends only nonsense costs one row
 * a day and one statement a second. The counts of the last second are lost when the process is killed.
 */
export function createWarnings(options: {
  queryable: Queryable;
  logger?: Pick<Logger, 'warn'>;
  flushEvery?: number;
}): Warnings {
  let waiting = new Map<string, NewIngestionWarning>();
  let writing: Promise<void> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  function merge(warning: NewIngestionWarning): void {
    const key = `${warning.project_id} ${warning.reason}`;
    const known = waiting.get(key);
    if (known) {
      known.count += warning.count;
      known.first_seen = Math.min(known.first_seen, warning.first_seen);
      known.last_seen = Math.max(known.last_seen, warning.last_seen);
    } else if (waiting.size < MOST_KEPT) waiting.set(key, warning);
  }

  function schedule(): void {
    if (timer || closed) return;
    timer = setTimeout(() => {
      timer = undefined;
      flush().catch((error) => {
        options.logger?.warn({ err: error }, 'ingestion warnings could not be written; they are kept');
        schedule();
      });
    }, options.flushEvery ?? FLUSH_EVERY);
    timer.unref();
  }

  async function write(): Promise<void> {
    if (waiting.size === 0) return;
    const batch = waiting;
    waiting = new Map();
    try {
      await addIngestionWarnings(options.queryable, [...batch.values()]);
    } catch (error) {
      for (const warning of batch.values()) merge(warning);
      throw error;
    }
  }

  function flush(): Promise<void> {
    writing = writing.catch(() => undefined).then(write);
    return writing;
  }

  return {
    add(projectId, notices, now) {
      if (notices.counts.size === 0) return;
      for (const [reason, { count, first }] of notices.counts) {
        merge({
          project_id: projectId,
          reason,
          effect: effectOf(reason),
          count,
          first_seen: now,
          last_seen: now,
          sample: { index: first.index, ...first.detail },
        });
      }
      schedule();
    },
    flush,
    async close() {
      closed = true;
      clearTimeout(timer);
      await flush().catch((error) =>
        options.logger?.warn({ err: error }, 'the last ingestion warnings could not be written'),
      );
    },
  };
}
