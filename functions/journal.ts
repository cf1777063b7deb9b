import type { Queryable } from '../db/pool.ts';
import type { Logger } from '../telemetry/logger.ts';
import { cleanText } from '../values/texts.ts';
import { addCounts, Counts } from './rows/counts.ts';
import { addLogs, type NewLogRow } from './rows/logs.ts';
import type { LogEntry } from './rules/logs.ts';

/** What became of an invocation. */
export interface Entry {
  projectId: number;
  functionId: string;
  instanceId: string;
  logs: readonly LogEntry[];
  counts: readonly { kind: 'success' | 'failure' | 'other'; name: string; count: number }[];
}

/** Writes down what becomes of invocations. */
export interface Journal {
  add(entry: Entry): void;
  /** When it resolves, everything so far is in the tables. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

export interface JournalOptions {
  queryable: Queryable;
  logger?: Pick<Logger, 'warn'> | undefined;
  flushEvery?: number;
  /** How many characters of logs wait, of all projects and of one. */
  mostCharacters?: number;
  mostCharactersOfOne?: number;
}

const FLUSH_EVERY = 1_000;
const MOST_CHARACTERS = 8 * 1024 * 1024;
const MOST_CHARACTERS_OF_ONE = 256 * 1024;
const MOST_COUNTS = 10_000;
/** What an entry takes besides its text. */
const ENTRY_CHARACTERS = 200;

/**
 * Collects logs and counts in memory and writes them once a second, whatever the number of invocations. Logs beyond a
 * bound are left out: a project that floods fills its own part, and the others keep theirs. What is not written yet is
 * lost when the process is killed.
 */
export function createJournal(options: JournalOptions): Journal {
  const { queryable, logger, flushEvery = FLUSH_EVERY, mostCharacters = MOST_CHARACTERS } = options;
  const { mostCharactersOfOne = MOST_CHARACTERS_OF_ONE } = options;
  let logs: NewLogRow[] = [];
  let counts = new Counts();
  let characters = 0;
  let byProject = new Map<number, number>();
  let leftOut = 0;
  let writing: Promise<void> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  function count(owner: { projectId: number; functionId: string }, one: Entry['counts'][number]): void {
    if (counts.size >= MOST_COUNTS) return;
    counts.add(owner.projectId, owner.functionId, one.kind, one.name, one.count);
  }

  function log(row: NewLogRow): void {
    const size = row.message.length + ENTRY_CHARACTERS;
    const own = byProject.get(row.projectId) ?? 0;
    if (characters + size > mostCharacters || own + size > mostCharactersOfOne) {
      leftOut += 1;
      return;
    }
    characters += size;
    byProject.set(row.projectId, own + size);
    logs.push(row);
  }

  function schedule(): void {
    if (timer || closed) return;
    timer = setTimeout(() => {
      timer = undefined;
      flush().catch((error) => {
        logger?.warn({ err: error }, 'logs of functions could not be written; counts are kept');
        schedule();
      });
    }, flushEvery);
    timer.unref();
  }

  async function write(): Promise<void> {
    const [rows, sums] = [logs, counts.all];
    logs = [];
    counts = new Counts();
    characters = 0;
    byProject = new Map();
    if (leftOut > 0)
      logger?.warn({ left_out: leftOut }, 'functions logged too much; some lines are left out');
    leftOut = 0;
    try {
      await addCounts(queryable, sums);
    } catch (error) {
      for (const one of sums) count(one, one);
      throw error;
    }
    await addLogs(queryable, rows);
  }

  function flush(): Promise<void> {
    writing = writing.catch(() => undefined).then(write);
    return writing;
  }

  return {
    add({ projectId, functionId, instanceId, logs: entries, counts: sums }) {
      const owner = { projectId, functionId };
      for (const one of entries) log({ ...owner, instanceId, ...one, message: cleanText(one.message) });
      for (const one of sums) count(owner, one);
      schedule();
    },
    flush,
    async close() {
      closed = true;
      clearTimeout(timer);
      await flush().catch((error) =>
        logger?.warn({ err: error }, 'the last logs of functions could not be written'),
      );
    },
  };
}
