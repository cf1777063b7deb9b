import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { abandonConnection } from './abandon-connection.ts';
import type { Address } from './pool.ts';
import { openNotice } from './sealed-notices.ts';

/** The channels whose notifications the database seals. Whatever else arrives there comes from somebody who may not. */
const SEALED = /^sluice_(?:project_keys|flags|public_offers|site_functions|source_webhooks)$/;

/** Gets the notifications (NOTIFY) of a channel, whichever process commits them. */
export interface Subscriber {
  /** A notification arrived. */
  told(payload: string): void;
  /** Notifications may have been missed. From now on all of them arrive again. */
  missed(): void;
}

export interface Listener {
  /** Subscribes to a channel. Returns a function that ends the subscription. */
  subscribe(channel: string, subscriber: Subscriber): () => void;
  /** Returns whether every notification arrives at the moment. If not, what a subscriber knows may be out of date. */
  isListening(): boolean;
  close(): Promise<void>;
}

export interface ListenerOptions {
  url: Address;
  /** Shown in pg_stat_activity. */
  name: string;
  /** Called once for each loss of the connection. */
  onError?: (error: Error) => void;
  /** Milliseconds between two checks that the connection works. */
  checkEvery?: number;
  /** Milliseconds after which a connection without a response is given up. */
  patience?: number;
}

const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 5_000;
const CHECK_EVERY = 10_000;
const PATIENCE = 5_000;

/** Listens on a connection of its own, and connects again whenever it breaks. */
export function createListener(options: ListenerOptions): Listener {
  const { checkEvery = CHECK_EVERY, patience = PATIENCE } = options;
  const channels = new Map<string, Set<Subscriber>>();
  let client: pg.Client | undefined;
  let listening = false;
  let closed = false;
  let wait = FIRST_PAUSE;
  let retry: NodeJS.Timeout | undefined;
  let connecting: Promise<void> | undefined;
  // Only this listener uses this channel, to check its connection.
  const own = `sluice_${randomBytes(8).toString('hex')}`;
  let heard: ((payload: string) => void) | undefined;

  // A connection takes one statement at a time.
  let turn: Promise<unknown> = Promise.resolve();
  function ask(on: pg.Client, text: string, values?: string[]): Promise<unknown> {
    const answer = turn.then(() => on.query(text, values));
    turn = answer.catch(() => undefined);
    return answer;
  }
  const listen = (on: pg.Client, channel: string) => ask(on, `listen ${pg.escapeIdentifier(channel)}`);

  function lose(lost: pg.Client, error: Error): void {
    if (client !== lost) return;
    client = undefined;
    listening = false;
    abandonConnection(lost, error);
    if (closed) return;
    if (wait === FIRST_PAUSE) options.onError?.(error);
    retry = setTimeout(connect, wait).unref();
    wait = Math.min(wait * 2, LONGEST_PAUSE);
  }

  /**
   * Sends itself a notification and waits for it. Without this check, a connection whose other end is gone silently, or
   * a pooler that shares connections, looks like one on which nothing happens.
   */
  function proveAlive(on: pg.Client): Promise<void> {
    const payload = randomBytes(8).toString('hex');
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error('A notification did not arrive.')), patience).unref();
      heard = (text) => {
        if (text !== payload) return;
        clearTimeout(late);
        resolve();
      };
      ask(on, 'select pg_notify($1, $2)', [own, payload]).catch((error) => {
        clearTimeout(late);
        reject(error);
      });
    });
  }

  async function open(): Promise<void> {
    const opening = new pg.Client({
      connectionString: typeof options.url === 'string' ? options.url : options.url(),
      application_name: `sluice-${options.name}`,
      connectionTimeoutMillis: patience,
      query_timeout: patience,
      keepAlive: true,
    });
    client = opening;
    opening.on('error', (error) => lose(opening, error));
    opening.on('end', () => lose(opening, new Error('The connection was ended.')));
    let secret: Buffer | undefined;
    opening.on('notification', ({ channel, payload = '' }) => {
      if (channel === own) heard?.(payload);
      const message = SEALED.test(channel) ? secret && openNotice(secret, channel, payload) : payload;
      if (message === undefined) return;
      for (const subscriber of channels.get(channel) ?? []) subscriber.told(message);
    });
    try {
      await opening.connect();
      const { rows } = await opening.query<{ secret: Buffer }>('select secret from notice_secret');
      secret = rows[0]?.secret;
      await listen(opening, own);
      await proveAlive(opening);
      for (const channel of channels.keys()) await listen(opening, channel);
    } catch (error) {
      lose(opening, error as Error);
      return;
    }
    if (client !== opening) return;
    wait = FIRST_PAUSE;
    for (const subscribers of channels.values()) for (const one of subscribers) one.missed();
    listening = true;
  }

  function connect(): void {
    if (!closed) connecting = open();
  }

  const check = setInterval(() => {
    const asked = client;
    if (asked && listening) proveAlive(asked).catch((error) => lose(asked, error));
  }, checkEvery).unref();

  return {
    subscribe(channel, subscriber) {
      const others = channels.get(channel);
      if (others) others.add(subscriber);
      else {
        channels.set(channel, new Set([subscriber]));
        const current = client;
        if (!current) {
          if (!retry) connect();
        } else if (listening) {
          listening = false;
          listen(current, channel).then(
            () => {
              if (client !== current) return;
              subscriber.missed();
              listening = true;
            },
            (error) => lose(current, error),
          );
        }
      }
      return () => channels.get(channel)?.delete(subscriber);
    },
    isListening: () => listening,
    async close() {
      closed = true;
      clearInterval(check);
      clearTimeout(retry);
      const last = client;
      client = undefined;
      // The driver forgets whoever waits for a connection that is ended while it opens.
      if (last && !listening) abandonConnection(last, new Error('The listener is closed.'));
      else await last?.end().catch(() => undefined);
      listening = false;
      await connecting;
    },
  };
}
