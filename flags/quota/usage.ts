import type { Logger } from '../../telemetry/logger.ts';
import { Quiet } from '../../telemetry/quiet.ts';
import type { UsageRow } from '../rows/usage.ts';

const FLUSH_EVERY = 5_000;
/** While the database is away, the counts of so many projects and days are kept. */
const MOST_KEPT = 50_000;
const DAY = 86_400_000;

export type Counted = 'requests' | 'definitions' | 'limited';

/** Counts the requests of projects by day. */
export interface Usage {
  count(projectId: number, kind: Counted): void;
  /** Writes the counts so far. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** Counts in memory and writes every few seconds. The last counts are lost when the process is killed. */
export function createUsage(options: {
  logger: Pick<Logger, 'warn'>;
  write(counts: readonly UsageRow[]): Promise<void>;
  now?: () => number;
  flushEvery?: number;
}): Usage {
  const { logger, now = Date.now, flushEvery = FLUSH_EVERY } = options;
  const waiting = new Map<string, UsageRow>();
  /** The rows of today, by project. */
  let ofToday = new Map<number, UsageRow>();
  let today = '';
  let tomorrow = 0;
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();
  const quiet = new Quiet();

  function rowOf(project_id: number, day: string): UsageRow | undefined {
    const key = `${day} ${project_id}`;
    let row = waiting.get(key);
    if (!row && waiting.size < MOST_KEPT) {
      row = { project_id, day, requests: 0, definitions: 0, limited: 0 };
      waiting.set(key, row);
    }
    return row;
  }

  async function write(): Promise<void> {
    if (waiting.size === 0) return;
    const batch = [...waiting.values()];
    waiting.clear();
    ofToday = new Map();
    try {
      await options.write(batch);
    } catch (error) {
      for (const { project_id, day, ...counts } of batch) {
        const row = rowOf(project_id, day);
        if (!row) continue;
        for (const kind of ['requests', 'definitions', 'limited'] as const) row[kind] += counts[kind];
      }
      schedule();
      quiet.tell((untold) =>
        logger.warn(
          { err: error, untold },
          'requests for flags could not be counted yet; the counts are kept',
        ),
      );
    }
  }

  function schedule(): void {
    timer ??= setTimeout(() => {
      timer = undefined;
      void flush();
    }, flushEvery).unref();
  }

  function flush(): Promise<void> {
    writing = writing.then(write);
    return writing;
  }

  return {
    count(projectId, kind) {
      const time = now();
      if (time >= tomorrow) {
        tomorrow = (Math.floor(time / DAY) + 1) * DAY;
        today = new Date(time).toISOString().slice(0, 10);
        ofToday = new Map();
      }
      let row = ofToday.get(projectId);
      if (!row) {
        row = rowOf(projectId, today);
        if (!row) return;
        ofToday.set(projectId, row);
        schedule();
      }
      row[kind] += 1;
    },
    flush,
    async close() {
      await flush();
      clearTimeout(timer);
    },
  };
}
