import { LRUCache } from 'lru-cache';
import type { Listener } from '../../db/listen.ts';
import { errors } from '../errors.ts';
import { Patience } from './patience.ts';

/** If a notification of Postgres is ever lost unnoticed, what is remembered is wrong for so long. */
const HEARD_FRESH_FOR = 60_000;
/** While nothing is heard from Postgres, it is asked again after so long. */
const UNHEARD_FRESH_FOR = 5_000;
const MOST_KEPT = 64 * 1024 * 1024;
/** What an entry takes besides its own bytes. */
const ENTRY_BYTES = 500;
/** What does not exist is remembered apart, so that guesses do not make anything forgotten. */
const MOST_ABSENT = 10_000;
/** How many are read at once, and how many others may wait. */
const AT_ONCE = 2;
const MOST_WAITING = 200;
const RETRY_SECONDS = 2;

export interface RememberedOptions<T> {
  /** The channel on which Postgres names a key when what it names has changed. */
  channel: string;
  listener: Pick<Listener, 'subscribe' | 'isListening'>;
  /** Reads what a key names, and says how many bytes it takes. Undefined: there is no such thing. */
  read(key: string): Promise<{ value: T; bytes: number } | undefined>;
  now?: () => number;
  /** How many bytes are remembered together. */
  mostKept?: number;
}

interface Entry<T> {
  value: T | undefined;
  bytes: number;
  at: number;
  /** A change may have been missed. */
  isDoubtful: boolean;
  /** It is read again before it is used, unless the database is away. Until then the key still counts as one that names something. */
  isChanged: boolean;
}

/** What public requests need of the database, by key. */
export interface Remembered<T> {
  /** Mostly answered from memory, then without a promise. */
  of(key: string): T | undefined | Promise<T | undefined>;
  /** Whether something is remembered of a key, be it that it names nothing. */
  knows(key: string): boolean;
  forget(key: string): void;
  close(): void;
}

/**
 * Remembers what keys name until it changes. Many requests for a key make one query together, and all that is
 * remembered takes no more than a fixed amount of memory: what nobody asks for goes first.
 */
export function createRemembered<T>(options: RememberedOptions<T>): Remembered<T> {
  const { listener, read, now = Date.now, mostKept = MOST_KEPT } = options;
  const kept = new LRUCache<string, Entry<T>>({ maxSize: mostKept, sizeCalculation: ({ bytes }) => bytes });
  const absent = new LRUCache<string, Entry<T>>({ max: MOST_ABSENT });
  const asked = new Map<string, Promise<T | undefined>>();
  const queue: (() => void)[] = [];
  const waiting = new Patience(now);
  let reading = 0;

  function forget(key: string): void {
    absent.delete(key);
    const entry = kept.peek(key);
    if (entry) entry.isChanged = true;
    // An answer that is still on its way may be older than the change, so it is not remembered.
    asked.delete(key);
  }

  function keep(key: string, entry: Entry<T>): void {
    const [its, other] = entry.value === undefined ? [absent, kept] : [kept, absent];
    other.delete(key);
    its.set(key, entry);
  }

  async function inTurn<R>(work: () => Promise<R>): Promise<R> {
    if (reading >= AT_ONCE) {
      if (queue.length >= MOST_WAITING) {
        throw errors.unavailable('Too much is being read at the moment. Send it again.', RETRY_SECONDS);
      }
      await new Promise<void>((resolve) => queue.push(resolve));
    } else reading += 1;
    try {
      return await work();
    } finally {
      // The turn is handed on, so nobody comes between.
      const next = queue.shift();
      if (next) next();
      else reading -= 1;
    }
  }

  function ask(key: string): Promise<T | undefined> {
    const answer = inTurn(async () => {
      const at = now();
      const found = await read(key);
      waiting.answered();
      if (asked.get(key) === answer) {
        const size = (found?.bytes ?? 0) + ENTRY_BYTES;
        keep(key, { value: found?.value, bytes: size, at, isDoubtful: false, isChanged: false });
      }
      return found?.value;
    }).finally(() => {
      if (asked.get(key) === answer) asked.delete(key);
    });
    asked.set(key, answer);
    return answer;
  }

  /** Asks again. What was known stands while Postgres is slow or away. */
  const confirm = (key: string, entry: Entry<T>): T | undefined | Promise<T | undefined> =>
    waiting.prefer(() => asked.get(key) ?? ask(key), entry.value);

  const unsubscribe = listener.subscribe(options.channel, {
    told: forget,
    missed() {
      for (const entry of kept.values()) entry.isDoubtful = true;
      absent.clear();
      asked.clear();
    },
  });

  return {
    of(key) {
      const entry = kept.get(key) ?? absent.get(key);
      if (!entry) return asked.get(key) ?? ask(key);
      if (entry.isChanged) return confirm(key, entry);
      const age = now() - entry.at;
      if (!listener.isListening() || entry.isDoubtful) {
        return age < UNHEARD_FRESH_FOR && !entry.isDoubtful ? entry.value : confirm(key, entry);
      }
      // Whatever goes wrong here, the next request asks again.
      if (age >= HEARD_FRESH_FOR && !asked.has(key)) ask(key).catch(() => undefined);
      return entry.value;
    },
    knows: (key) => kept.has(key) || absent.has(key),
    forget,
    close: unsubscribe,
  };
}
