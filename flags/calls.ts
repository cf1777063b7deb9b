import type { Queryable } from '../db/pool.ts';
import type { Logger } from '../telemetry/logger.ts';
import { Quiet } from '../telemetry/quiet.ts';
import { type FlagCall, noteCalls } from './rows/calls.ts';

/** Calls are written down so often, in milliseconds, all of them in one statement. */
const EVERY = 30_000;
/** So many flags are remembered between two writes, and so many of one project. Keys come from clients. */
const MOST = 50_000;
const MOST_OF_PROJECT = 10_000;
const LONGEST_KEY = 400;

/** Remembers when flags were asked for by their keys. */
export interface Calls {
  note(projectId: number, key: string): void;
  /** Writes down what is remembered. What could not be written is written with the next. */
  flush(): Promise<void>;
  /** Writes down what is left. */
  close(): Promise<void>;
}

/** Collects the calls of flags in memory, so that no request writes. */
export function createCalls({
  queryable,
  logger,
  every = EVERY,
  now = Date.now,
}: {
  queryable: Queryable;
  logger: Pick<Logger, 'warn'>;
  every?: number;
  now?: () => number;
}): Calls {
  let called = new Map<number, Map<string, number>>();
  let count = 0;
  let writing: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  const quiet = new Quiet();

  function remember(projectId: number, key: string, at: number): void {
    let ofProject = called.get(projectId);
    if (!ofProject) {
      ofProject = new Map();
      called.set(projectId, ofProject);
    }
    const before = ofProject.get(key);
    if (before === undefined) {
      if (count >= MOST || ofProject.size >= MOST_OF_PROJECT) return;
      count += 1;
    }
    ofProject.set(key, Math.max(before ?? 0, at));
  }

  async function write(): Promise<void> {
    const taken = called;
    called = new Map();
    count = 0;
    const calls: FlagCall[] = [...taken].flatMap(([projectId, keys]) =>
      [...keys].map(([key, at]) => ({ projectId, key, at })),
    );
    try {
      await noteCalls(queryable, calls);
    } catch (error) {
      for (const { projectId, key, at } of calls) remember(projectId, key, at);
      plan();
      quiet.tell((untold) =>
        logger.warn({ err: error, calls: calls.length, untold }, 'the last calls of flags were not recorded'),
      );
    }
  }

  function plan(): void {
    timer ??= setTimeout(() => {
      timer = undefined;
      void flush();
    }, every).unref();
  }

  async function flush(): Promise<void> {
    await writing;
    if (count === 0) return;
    writing = write().finally(() => {
      writing = undefined;
    });
    await writing;
  }

  return {
    note(projectId, key) {
      if (key === '' || key.length > LONGEST_KEY) return;
      remember(projectId, key, now());
      plan();
    },
    flush,
    async close() {
      await flush();
      clearTimeout(timer);
    },
  };
}
