import type { Queryable } from '../../db/pool.ts';
import { type CaptureProjectRow, findProjectByToken } from '../../db/projects.ts';

/** A rotated key, or a changed setting, takes effect after this long at the latest. */
const FRESH_FOR = 5_000;
/** Keys that nobody has are remembered too, or each guess would be a query. */
const MOST_KEPT = 10_000;

interface Entry {
  project: CaptureProjectRow | undefined;
  until: number;
}

export interface ProjectKeys {
  /** The project of a key, undefined when no project has it. Answered from memory, mostly. */
  find(token: string): CaptureProjectRow | undefined | Promise<CaptureProjectRow | undefined>;
}

/** Remembers the projects of keys for some seconds; many requests with a key that is not known yet are one query. */
export function createProjectKeys(
  queryable: Queryable,
  options: { now?: () => number; freshFor?: number } = {},
): ProjectKeys {
  const now = options.now ?? Date.now;
  const known = new Map<string, Entry>();
  const asked = new Map<string, Promise<CaptureProjectRow | undefined>>();

  async function ask(token: string): Promise<CaptureProjectRow | undefined> {
    try {
      const project = await findProjectByToken(queryable, token);
      // The oldest entry goes first: maps keep their order.
      known.delete(token);
      if (known.size >= MOST_KEPT) known.delete(known.keys().next().value as string);
      known.set(token, { project, until: now() + (options.freshFor ?? FRESH_FOR) });
      return project;
    } finally {
      asked.delete(token);
    }
  }

  return {
    find(token) {
      const entry = known.get(token);
      if (entry && entry.until > now()) return entry.project;
      let answer = asked.get(token);
      if (!answer) {
        answer = ask(token);
        asked.set(token, answer);
      }
      return answer;
    },
  };
}
