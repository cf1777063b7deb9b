import type { Listener } from '../../db/listen.ts';
import type { Queryable } from '../../db/pool.ts';
import { findProjectByToken, PROJECT_KEYS_CHANNEL, type PublicProjectRow } from '../../db/projects.ts';
import { errors } from '../errors.ts';

/** Postgres tells of a change as soon as it is committed. If that ever fails unnoticed, an entry is wrong for so long. */
const HEARD_FRESH_FOR = 60_000;
/** While nothing is heard from Postgres, a replaced key or a changed setting takes effect after so long at the latest. */
const UNHEARD_FRESH_FOR = 5_000;
/** Keys that no project has are remembered too. Otherwise each guess would be a query. */
const MOST_KEPT = 10_000;
const LONGEST_KEY = 64;
const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;

interface Entry {
  project: PublicProjectRow | undefined;
  at: number;
}

export interface ProjectKeys {
  /** The project of a key, undefined when no project has it. Mostly answered from memory, then without a promise. */
  find(token: string): PublicProjectRow | undefined | Promise<PublicProjectRow | undefined>;
  /** The project of what a request gives as its key. Refuses with 401 what is no key, and keys that no project has. */
  authenticate(given: unknown): PublicProjectRow | Promise<PublicProjectRow>;
  close(): void;
}

function notValid(reason: string): Error {
  return errors.authenticationFailed(`API key is not valid: ${reason}`);
}

/** The key without the white space around it. Refuses with 401 what cannot be the key of any project. */
export function checkToken(given: unknown): string {
  if (given === undefined || given === null) {
    throw errors.authenticationFailed('event submitted without an api_key');
  }
  if (typeof given !== 'string') throw notValid('not_a_string');
  const token = given.trim();
  if (token === '') throw notValid('empty');
  if (token.length > LONGEST_KEY) throw notValid('too_long');
  if (token.includes('\u0000')) throw notValid('null_byte');
  if (!PRINTABLE_ASCII.test(token)) throw notValid('not_ascii');
  if (token.startsWith('phx_')) throw notValid('personal_api_key');
  return token;
}

function known(project: PublicProjectRow | undefined): PublicProjectRow {
  if (!project) throw notValid('unknown');
  return project;
}

/** Remembers the projects of keys until they change. Many requests with a new key make one query together. */
export function createProjectKeys(
  queryable: Queryable,
  listener: Pick<Listener, 'subscribe' | 'isListening'>,
  now: () => number = Date.now,
): ProjectKeys {
  const remembered = new Map<string, Entry>();
  const asked = new Map<string, Promise<PublicProjectRow | undefined>>();
  const unsubscribe = listener.subscribe(PROJECT_KEYS_CHANNEL, {
    // An answer that is still on its way may be older than the change, so it is not remembered.
    told(token) {
      remembered.delete(token);
      asked.delete(token);
    },
    missed() {
      remembered.clear();
      asked.clear();
    },
  });

  function ask(token: string): Promise<PublicProjectRow | undefined> {
    const at = now();
    const answer = findProjectByToken(queryable, token).then(
      (project) => {
        if (asked.get(token) !== answer) return project;
        asked.delete(token);
        // A map keeps its order, so the first entry is the oldest. It makes room for the new one.
        remembered.delete(token);
        if (remembered.size >= MOST_KEPT) remembered.delete(remembered.keys().next().value as string);
        remembered.set(token, { project, at });
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

  function find(token: string): PublicProjectRow | undefined | Promise<PublicProjectRow | undefined> {
    const entry = remembered.get(token);
    if (entry) {
      const freshFor = listener.isListening() ? HEARD_FRESH_FOR : UNHEARD_FRESH_FOR;
      if (now() - entry.at < freshFor) return entry.project;
    }
    return asked.get(token) ?? ask(token);
  }

  return {
    find,
    authenticate(given) {
      const found = find(checkToken(given));
      return found instanceof Promise ? found.then(known) : known(found);
    },
    close: unsubscribe,
  };
}
