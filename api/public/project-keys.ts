import { LRUCache } from 'lru-cache';
import type { Listener } from '../../db/listen.ts';
import type { Queryable } from '../../db/pool.ts';
import { findProjectByToken, PROJECT_KEYS_CHANNEL, type PublicProjectRow } from '../../db/projects.ts';
import { Allowances } from '../../values/allowances.ts';
import { clientNetwork } from '../../values/clients.ts';
import { errors } from '../errors.ts';
import { LATE, Patience } from './patience.ts';

/**
 * Postgres tells of a change as soon as it is committed. If that ever fails unnoticed, an entry is wrong for so long.
 * After that it is looked up again, and the last answer is given meanwhile.
 */
const HEARD_FRESH_FOR = 60_000;
/** While nothing is heard from Postgres, a replaced key or a changed setting takes effect after so long. */
const UNHEARD_FRESH_FOR = 5_000;
/** That nobody has a key is believed for no longer than so long without Postgres. */
const UNHEARD_WRONG_FOR = 60_000;
/** Keys that no project has are remembered too, and apart, so that guesses do not make anybody's key forgotten. */
const MOST_KEPT = 50_000;
const MOST_WRONG = 10_000;
const RETRY_SECONDS = 2;
const LONGEST_KEY = 64;
const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;

interface Entry {
  project: PublicProjectRow | undefined;
  /** When the answer was asked for. */
  at: number;
  /** A change of it may have been missed. */
  isDoubtful: boolean;
}

type Found = PublicProjectRow | undefined;

export interface ProjectKeys {
  /**
   * The project of a key, undefined when no project has it. Mostly answered from memory, then without a promise. Refuses
   * to look up a key for a client of which too many keys were wrong. A key that is remembered is never refused so.
   */
  find(token: string, client?: string): Found | Promise<Found>;
  /** The project of what a request gives as its key. Refuses with 401 what is no key, and keys that no project has. */
  authenticate(given: unknown, client?: string): PublicProjectRow | Promise<PublicProjectRow>;
  close(): void;
}

/** Where the projects of keys are kept for a process that starts while the database is away. */
export interface KeyCopies {
  save(token: string, project: PublicProjectRow): void;
  remove(token: string): void;
  has(token: string): boolean;
  read(token: string): Promise<PublicProjectRow | undefined>;
}

export interface ProjectKeyOptions {
  copies?: KeyCopies | undefined;
  now?: () => number;
  /** How many keys of a client may be looked up in vain in a minute; 0 means any number. */
  wrongPerMinute?: number;
  /** Milliseconds that Postgres has for an answer, if there is an earlier one. */
  patience?: number;
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

function requireKnown(project: PublicProjectRow | undefined): PublicProjectRow {
  if (!project) throw notValid('unknown');
  return project;
}

const isSame = (one: PublicProjectRow, other: PublicProjectRow | undefined): boolean =>
  other !== undefined && JSON.stringify(one) === JSON.stringify(other);

/** Remembers the projects of keys until they change. Many requests with a new key make one query together. */
export function createProjectKeys(
  queryable: Queryable,
  listener: Pick<Listener, 'subscribe' | 'isListening'>,
  { now = Date.now, wrongPerMinute = 0, patience, copies }: ProjectKeyOptions = {},
): ProjectKeys {
  const known = new LRUCache<string, Entry>({ max: MOST_KEPT });
  const wrong = new LRUCache<string, Entry>({ max: MOST_WRONG });
  const asked = new Map<string, Promise<Found>>();
  const guesses = new Allowances(wrongPerMinute);
  const waiting = new Patience(now, patience);
  const unsubscribe = listener.subscribe(PROJECT_KEYS_CHANNEL, {
    // An answer that is still on its way may be older than the change, so it is not remembered.
    told(token) {
      wrong.delete(token);
      const entry = known.get(token);
      if (entry) entry.isDoubtful = true;
      const isAsked = asked.delete(token);
      // Nobody may ask for it again, but a copy must not outlive its key, and what was just asked for needs a copy.
      if (isAsked || copies?.has(token)) ask(token).catch(() => undefined);
    },
    missed() {
      wrong.clear();
      for (const entry of known.values()) entry.isDoubtful = true;
      asked.clear();
    },
  });

  function ask(token: string): Promise<Found> {
    const at = now();
    const answer = findProjectByToken(queryable, token).then(
      (project) => {
        waiting.answered();
        if (asked.get(token) !== answer) return project;
        asked.delete(token);
        const before = known.get(token);
        known.delete(token);
        wrong.delete(token);
        const entry = { project, at, isDoubtful: false };
        (project ? known : wrong).set(token, entry);
        if (!project) copies?.remove(token);
        else if (project && !isSame(project, before?.project)) copies?.save(token, project);
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

  const latest = (token: string): Promise<Found> => asked.get(token) ?? ask(token);

  /** Asks again. The earlier answer stands if Postgres is slow or away. */
  function confirm(token: string, entry: Entry): Found | Promise<Found> {
    if (!entry.project && now() - entry.at >= UNHEARD_WRONG_FOR) return latest(token);
    return waiting.prefer(() => latest(token), entry.project);
  }

  /** Looks up a key of which nothing is known. */
  async function lookUp(token: string, client: string | undefined): Promise<Found> {
    const network = clientNetwork(client);
    const seconds = guesses.wait(network, now());
    if (seconds > 0) {
      const refusal = 'Too many requests from this address had an unknown key. Send it again.';
      throw errors.unavailable(refusal, Math.max(seconds, RETRY_SECONDS));
    }
    const isFirst = !asked.has(token);
    const project = await (copies ? withCopy(token, copies) : latest(token));
    if (isFirst && !project) guesses.count(network, now());
    return project;
  }

  /** The copy serves if Postgres is slow or away. */
  async function withCopy(token: string, { read }: KeyCopies): Promise<Found> {
    const answer = latest(token);
    const found = await waiting.wait(answer);
    if (found !== LATE) return found;
    const project = await read(token);
    if (!project) return answer;
    if (!known.has(token) && !wrong.has(token)) known.set(token, { project, at: now(), isDoubtful: true });
    return project;
  }

  function find(token: string, client?: string): Found | Promise<Found> {
    const entry = known.get(token) ?? wrong.get(token);
    if (!entry) return lookUp(token, client);
    const age = now() - entry.at;
    if (!listener.isListening() || entry.isDoubtful) {
      return age < UNHEARD_FRESH_FOR && !entry.isDoubtful ? entry.project : confirm(token, entry);
    }
    // Whatever goes wrong here, the next request asks again.
    if (age >= HEARD_FRESH_FOR && !asked.has(token)) ask(token).catch(() => undefined);
    return entry.project;
  }

  return {
    find,
    authenticate(given, client) {
      const found = find(checkToken(given), client);
      return found instanceof Promise ? found.then(requireKnown) : requireKnown(found);
    },
    close: unsubscribe,
  };
}
