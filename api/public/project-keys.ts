import type { Listener } from '../../db/listen.ts';
import type { Queryable } from '../../db/pool.ts';
import { type CaptureProjectRow, findProjectByToken, PROJECT_KEYS_CHANNEL } from '../../db/projects.ts';

/** Changes are heard of the moment they are committed. Should that fail unnoticed, this is how long it can matter. */
const HEARD_FRESH_FOR = 60_000;
/** While changes are not heard of, a rotated key or a changed setting takes effect after this long at the latest. */
const UNHEARD_FRESH_FOR = 5_000;
/** Keys that nobody has are remembered too, or each guess would be a query. */
const MOST_KEPT = 10_000;

interface Entry {
  project: CaptureProjectRow | undefined;
  at: number;
}

export interface ProjectKeys {
  /** The project of a key, undefined when no project has it. Answered from memory, mostly. */
  find(token: string): CaptureProjectRow | undefined | Promise<CaptureProjectRow | undefined>;
  close(): void;
}

/** Remembers the projects of keys until they change; many requests with a key that is not known yet are one query. */
export function createProjectKeys(
  queryable: Queryable,
  listener: Pick<Listener, 'subscribe' | 'isListening'>,
  now: () => number = Date.now,
): ProjectKeys {
  const known = new Map<string, Entry>();
  const asked = new Map<string, Promise<CaptureProjectRow | undefined>>();
  const unsubscribe = listener.subscribe(PROJECT_KEYS_CHANNEL, {
    // An answer that is on its way may be from before the change.
    told(token) {
      known.delete(token);
      asked.delete(token);
    },
    missed() {
      known.clear();
      asked.clear();
    },
  });

  function ask(token: string): Promise<CaptureProjectRow | undefined> {
    const at = now();
    const answer = findProjectByToken(queryable, token).then(
      (project) => {
        if (asked.get(token) !== answer) return project;
        asked.delete(token);
        // The oldest entry goes first: maps keep their order.
        known.delete(token);
        if (known.size >= MOST_KEPT) known.delete(known.keys().next().value as string);
        known.set(token, { project, at });
        return project;
      },
      (error) => {
        if (asked.get(token) === answer) asked.delete(token);
        throw error;
      },
    );
    asked.set(token, answer);
    return answer;
  }

  return {
    find(token) {
      const entry = known.get(token);
      if (entry) {
        const freshFor = listener.isListening() ? HEARD_FRESH_FOR : UNHEARD_FRESH_FOR;
        if (now() - entry.at < freshFor) return entry.project;
      }
      return asked.get(token) ?? ask(token);
    },
    close: unsubscribe,
  };
}
