import type { Listener } from '../../db/listen.ts';
import { isDatabaseUnavailable, type Queryable } from '../../db/pool.ts';
import {
  listSiteFunctions,
  SITE_FUNCTIONS_CHANNEL,
  type SiteFunctionRow,
} from '../../functions/rows/site.ts';
import { MOST_SITE_BYTES } from '../../functions/rules/limits.ts';
import { errors } from '../errors.ts';

/** If a notification of Postgres is ever lost unnoticed, what is remembered is wrong for so long. */
const HEARD_FRESH_FOR = 60_000;
/** While nothing is heard from Postgres, it is asked again after so long. */
const UNHEARD_FRESH_FOR = 5_000;
/** What was known goes on to be served for so long while Postgres is away. */
const GOOD_FOR = 60_000;
const MOST_KEPT = 64 * 1024 * 1024;
/** What an entry takes at least. */
const ENTRY_BYTES = 500;
/** How many projects are read at once, and how many others may wait. */
const AT_ONCE = 2;
const MOST_WAITING = 200;
const RETRY_SECONDS = 2;

export interface SiteFunctionsOptions<T> {
  queryable: Queryable;
  listener: Pick<Listener, 'subscribe' | 'isListening'>;
  /** Makes what is remembered of the functions, and says how many bytes it takes. */
  make(functions: SiteFunctionRow[], token: string): Promise<{ made: T; bytes: number }>;
  now?: () => number;
  /** How many bytes are remembered of all projects together. */
  mostKept?: number;
}

interface Entry<T> {
  made: T;
  token: string;
  bytes: number;
  at: number;
  /** A change may have been missed. */
  isDoubtful: boolean;
}

/** What browsers load of the functions of each project. */
export interface SiteFunctions<T> {
  /** Mostly answered from memory, then without a promise. */
  of(projectId: number, token: string): T | Promise<T>;
  close(): void;
}

/**
 * Remembers what browsers load of projects until it changes. Many requests for a project make one query together, and
 * what is remembered of all projects takes no more than a fixed amount of memory: those that nobody asks for go first.
 */
export function createSiteFunctions<T>(options: SiteFunctionsOptions<T>): SiteFunctions<T> {
  const { queryable, listener, make, now = Date.now, mostKept = MOST_KEPT } = options;
  const kept = new Map<number, Entry<T>>();
  const asked = new Map<number, Promise<T>>();
  const waiting: (() => void)[] = [];
  let reading = 0;
  let bytes = 0;

  function forget(projectId: number): void {
    bytes -= kept.get(projectId)?.bytes ?? 0;
    kept.delete(projectId);
  }

  function keep(projectId: number, entry: Entry<T>): void {
    forget(projectId);
    kept.set(projectId, entry);
    bytes += entry.bytes;
    // A map keeps its order, and an entry that is used moves to the end.
    for (const oldest of kept.keys()) {
      if (bytes <= mostKept) return;
      forget(oldest);
    }
  }

  async function inTurn<R>(work: () => Promise<R>): Promise<R> {
    if (reading >= AT_ONCE) {
      if (waiting.length >= MOST_WAITING) {
        throw errors.unavailable(
          'Too many projects are being read at the moment. Send it again.',
          RETRY_SECONDS,
        );
      }
      await new Promise<void>((resolve) => waiting.push(resolve));
    } else reading += 1;
    try {
      return await work();
    } finally {
      // The turn is handed on, so nobody comes between.
      const next = waiting.shift();
      if (next) next();
      else reading -= 1;
    }
  }

  function ask(projectId: number, token: string): Promise<T> {
    const at = now();
    const answer = inTurn(async () => {
      const { made, bytes } = await make(
        await listSiteFunctions(queryable, projectId, MOST_SITE_BYTES),
        token,
      );
      // A change that was told meanwhile may be newer than the answer.
      if (asked.get(projectId) === answer) {
        keep(projectId, { made, token, bytes: bytes + ENTRY_BYTES, at, isDoubtful: false });
      }
      return made;
    }).finally(() => {
      if (asked.get(projectId) === answer) asked.delete(projectId);
    });
    asked.set(projectId, answer);
    return answer;
  }

  /** Asks again. What was known stands if Postgres is away and it is not too old. */
  async function confirm(projectId: number, entry: Entry<T>): Promise<T> {
    try {
      return await (asked.get(projectId) ?? ask(projectId, entry.token));
    } catch (error) {
      if (!isDatabaseUnavailable(error) || now() - entry.at >= GOOD_FOR) throw error;
      return entry.made;
    }
  }

  const unsubscribe = listener.subscribe(SITE_FUNCTIONS_CHANNEL, {
    told(payload) {
      const projectId = Number(payload);
      forget(projectId);
      asked.delete(projectId);
    },
    missed() {
      for (const entry of kept.values()) entry.isDoubtful = true;
      asked.clear();
    },
  });

  return {
    of(projectId, token) {
      const entry = kept.get(projectId);
      // A project whose key was replaced is read again.
      if (!entry || entry.token !== token) {
        if (entry) {
          forget(projectId);
          asked.delete(projectId);
        }
        return asked.get(projectId) ?? ask(projectId, token);
      }
      kept.delete(projectId);
      kept.set(projectId, entry);
      const age = now() - entry.at;
      if (!listener.isListening() || entry.isDoubtful) {
        return age < UNHEARD_FRESH_FOR && !entry.isDoubtful ? entry.made : confirm(projectId, entry);
      }
      // Whatever goes wrong here, the next request asks again.
      if (age >= HEARD_FRESH_FOR && !asked.has(projectId)) ask(projectId, token).catch(() => undefined);
      return entry.made;
    },
    close: unsubscribe,
  };
}
