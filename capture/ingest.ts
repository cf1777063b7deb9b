import { setTimeout as pause } from 'node:timers/promises';
import { abandonConnection } from '../db/abandon-connection.ts';
import { eachInTurns } from '../db/loop-turns.ts';
import type { Pool, Transaction } from '../db/pool.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Registry } from '../telemetry/metrics.ts';
import type { CapturedEvent } from './captured-event.ts';
import type { NameWatcher } from './definitions/definitions.ts';
import type { EventFollower } from './follower.ts';
import {
  EventsRefusedError,
  IngestUnavailableError,
  PersonConflictError,
  refusesData,
} from './ingest/errors.ts';
import { MANY, type PreparedEvents, prepare } from './ingest/event-row.ts';
import { createIngestMetrics } from './ingest/metrics.ts';
import { createPersonRule, type PersonRule, type PersonsMerged } from './ingest/persons.ts';
import { type Queued, RequestQueue, Shares } from './ingest/queue.ts';
import { createStore, type Stored } from './ingest/store.ts';
import type { PersonNotice } from './persons/notice.ts';

export { EventsRefusedError, IngestUnavailableError } from './ingest/errors.ts';

interface IngestOptions {
  /** Used by nothing else. It needs a connection for each transaction that may run at the same time. */
  pool: Pool;
  registry?: Registry;
  logger?: Pick<Logger, 'warn'>;
  persons?: PersonRule;
  /** Where products join in when persons become one. */
  personsMerged?: PersonsMerged | undefined;
  /** Learns of the events that are stored. */
  follower?: EventFollower | undefined;
  /** Sees the names of events and properties. */
  names?: NameWatcher | undefined;
  limits?: Partial<IngestLimits>;
}

export interface IngestLimits {
  /**
   * Limits of the events that are accepted but not yet committed. When one is reached, further requests are refused. A
   * project has half of them.
   */
  queueBytes: number;
  queueEvents: number;
  /** Limits of one transaction. A single larger request gets a transaction of its own. */
  batchBytes: number;
  batchEvents: number;
  connections: number;
  /** After so many milliseconds a request that could not be committed is refused. */
  patience: number;
  /** Further milliseconds for each event of a request, since a large request may create many persons. */
  patienceForEvent: number;
}

const LIMITS: IngestLimits = {
  queueBytes: 32 * 1024 * 1024,
  queueEvents: 200_000,
  batchBytes: 4 * 1024 * 1024,
  batchEvents: 5_000,
  connections: 4,
  patience: 10_000,
  patienceForEvent: 0.2,
};
/**
 * When to begin another transaction, by the number of those that run already. Each costs a commit, so it begins only
 * when `bytes` bytes are waiting, or when the first request has waited for `after` milliseconds.
 */
const WORTH_ONE_MORE = [
  { bytes: 0, after: 0 },
  { bytes: 16 * 1024, after: 10 },
  // While two transactions wait for the disk, large requests can fill further ones.
  { bytes: 1024 * 1024, after: 100 },
];
const RETRY_SECONDS = 2;
const FIRST_PAUSE = 25;
const LONGEST_PAUSE = 1_000;

export interface Submitted {
  stored: number;
  duplicates: number;
  /**
   * Changes of persons or groups that an event asked for and that were not made. `index` is the event's in the request.
   */
  notices?: (PersonNotice & { index: number })[];
}

/** The events of one request, or their rows if another thread has begun them. */
export type IngestRequest =
  | { projectId: number; events: readonly CapturedEvent[] }
  | { projectId: number; prepared: PreparedEvents };

export interface Ingest {
  /**
   * Stores the events of one request: all or none, and each (project, uuid) once. Resolves when they are committed.
   * Rejects with IngestUnavailableError (send them again later) or EventsRefusedError (do not send them again).
   */
  submit(request: IngestRequest): Promise<Submitted>;
  /** Accepts no further requests. Resolves when each accepted one is committed or refused. The pool stays open. */
  close(): Promise<void>;
}

/** A request that waits for its events to be committed. */
interface PendingRequest extends Queued {
  readonly prepared: PreparedEvents;
  resolve(result: Submitted | Promise<Submitted>): void;
  reject(error: Error): void;
}

function release({ chunks }: PreparedEvents): void {
  for (const chunk of chunks) chunk.release();
}

/** Waits for a connection, but not longer than `milliseconds`. A connection that comes later goes back to the pool. */
async function connectWithin(pool: Pool, milliseconds: number): Promise<Transaction> {
  const connecting = pool.connect();
  let overdue: NodeJS.Timeout | undefined;
  const giveUp = new Promise<never>((_resolve, reject) => {
    overdue = setTimeout(() => {
      connecting.then(
        (client) => client.release(),
        () => undefined,
      );
      reject(new Error('There was no connection to Postgres in time.'));
    }, milliseconds);
  });
  try {
    return await Promise.race([connecting, giveUp]);
  } finally {
    clearTimeout(overdue);
  }
}

/** The answer to one request of a committed transaction. */
function submitted(
  { prepared: { events } }: PendingRequest,
  { duplicates, notices }: Stored,
): Submitted | Promise<Submitted> {
  if (duplicates.size === 0 && notices.size === 0) return { stored: events.length, duplicates: 0 };
  let known = 0;
  const own: NonNullable<Submitted['notices']>[number][] = [];
  const answer = (): Submitted => ({
    ...{ stored: events.length - known, duplicates: known },
    ...(own.length > 0 ? { notices: own } : {}),
  });
  const looking = eachInTurns(events, MANY, (one) => {
    if (duplicates.has(one)) known += 1;
    for (const notice of notices.get(one) ?? []) own.push({ ...notice, index: one.event.index });
  });
  return looking ? looking.then(answer) : answer();
}

/** Stores events by group commit: many requests share one transaction, and each is answered after its commit. */
export function createIngest(options: IngestOptions): Ingest {
  const { pool, logger, names, follower } = options;
  const limits = { ...LIMITS, ...options.limits };
  const store = createStore(options.persons ?? createPersonRule(options.personsMerged), follower);
  const queue = new RequestQueue<PendingRequest>();
  const held = new Shares({ bytes: limits.queueBytes, events: limits.queueEvents });
  const largest = { bytes: limits.batchBytes, events: limits.batchEvents };
  /** Transactions that run: all, and those of one large request. Half of the connections stay free of large ones. */
  let [running, runningLarge] = [0, 0];
  const mostLarge = Math.max(1, Math.floor(limits.connections / 2));
  let scheduled = false;
  let late: NodeJS.Timeout | undefined;
  let closing = false;
  let drained: (() => void) | undefined;
  const metrics = createIngestMetrics(options.registry, () => held.total);

  const unavailable = (reason: 'full' | 'late' | 'stopping', message: string, cause?: unknown) => {
    metrics.unavailable.inc({ reason });
    return new IngestUnavailableError(message, RETRY_SECONDS, { cause });
  };

  const full = () => unavailable('full', 'Too many events wait to be stored. Send them again later.');
  const stopping = () => unavailable('stopping', 'This process is stopping. Send the events again.');

  function finish(request: PendingRequest, answer: () => void): void {
    held.remove(request.projectId, request);
    release(request.prepared);
    answer();
  }

  /** Runs one transaction. If the server does not answer, the connection is closed when the patience ends. */
  async function commit(requests: readonly PendingRequest[], patience: number): Promise<void> {
    const all: Pick<PreparedEvents, 'events' | 'sorted'> =
      requests.length === 1
        ? requests[0]!.prepared
        : { events: requests.flatMap((one) => one.prepared.events) };
    const { events } = all;
    const client = await connectWithin(pool, Math.max(patience, FIRST_PAUSE));
    const began = performance.now();
    let broken: Error | undefined;
    const onError = (error: Error) => {
      broken = error;
    };
    client.on('error', onError);
    const overdue = setTimeout(
      () => abandonConnection(client, new Error('Postgres did not answer in time.')),
      Math.max(patience, FIRST_PAUSE),
    );
    try {
      const stored = await store(client, all);
      const { duplicates, persons } = stored;
      metrics.commitSeconds.observe((performance.now() - began) / 1000);
      metrics.batchEvents.observe(events.length);
      metrics.events.inc({ result: 'stored' }, events.length - duplicates.size);
      metrics.events.inc({ result: 'duplicate' }, duplicates.size);
      for (const change of ['created', 'changed', 'merged'] as const) {
        if (persons[change] > 0) metrics.persons.inc({ change }, persons[change]);
      }
      for (const request of requests) finish(request, () => request.resolve(submitted(request, stored)));
    } catch (error) {
      if (!broken) await client.query('rollback').catch(onError);
      throw error;
    } finally {
      clearTimeout(overdue);
      client.off('error', onError);
      client.release(broken);
    }
  }

  /** Stores the requests and answers each of them, with as many attempts as the patience allows. */
  async function settle(requests: readonly PendingRequest[]): Promise<void> {
    const events = requests.reduce((sum, request) => sum + request.events, 0);
    const end =
      (requests[0] as PendingRequest).submittedAt + limits.patience + events * limits.patienceForEvent;
    for (let wait = FIRST_PAUSE; ; wait = Math.min(wait * 2, LONGEST_PAUSE)) {
      const patience = end - performance.now();
      try {
        return await commit(requests, patience);
      } catch (error) {
        // The other transaction has ended by now, so there is nothing to wait for.
        if (error instanceof PersonConflictError && patience > 0) continue;
        if (refusesData(error)) return refuse(requests, error as Error);
        if (patience - wait <= 0) {
          logger?.warn({ err: error, requests: requests.length }, 'events could not be stored in time');
          const message =
            'The events could not be stored in time; none of them is acknowledged. Send them again.';
          for (const one of requests) finish(one, () => one.reject(unavailable('late', message, error)));
          return;
        }
        await pause(wait);
      }
    }
  }

  /** Postgres refuses a value of one of the requests. Halving finds that request, and stores the others. */
  async function refuse(requests: readonly PendingRequest[], error: Error): Promise<void> {
    if (requests.length > 1) {
      const half = requests.length >> 1;
      await settle(requests.slice(0, half));
      await settle(requests.slice(half));
      return;
    }
    const [request] = requests as [PendingRequest];
    logger?.warn({ err: error, events: request.events }, 'Postgres refuses events');
    metrics.events.inc({ result: 'refused' }, request.events);
    const message = `The events cannot be stored: ${error.message}.`;
    finish(request, () => request.reject(new EventsRefusedError(message, { cause: error })));
  }

  function start(): void {
    scheduled = false;
    clearTimeout(late);
    late = undefined;
    while (queue.events > 0 && running < limits.connections) {
      // Small requests do not wait for a large one that has a connection of its own.
      const others = running - runningLarge;
      const worth = (WORTH_ONE_MORE[others] ?? WORTH_ONE_MORE.at(-1)) as { bytes: number; after: number };
      if (queue.bytes < worth.bytes && queue.age() < worth.after) {
        late = setTimeout(start, worth.after);
        return;
      }
      const requests = queue.take(largest, runningLarge < mostLarge);
      const [first] = requests;
      if (!first) return;
      const large = first.bytes > largest.bytes || first.events > largest.events ? 1 : 0;
      running += 1;
      runningLarge += large;
      void settle(requests).then(() => {
        running -= 1;
        runningLarge -= large;
        if (queue.events > 0) start();
        else if (running === 0) drained?.();
      });
    }
  }

  return {
    async submit(request) {
      const { projectId } = request;
      const rows = 'prepared' in request ? request.prepared : undefined;
      const count = 'prepared' in request ? request.prepared.events.length : request.events.length;
      if (!closing && count === 0) return { stored: 0, duplicates: 0 };
      if (closing || !held.hasRoom(projectId, { bytes: 0, events: count })) {
        if (rows) release(rows);
        throw closing ? stopping() : full();
      }
      let prepared: PreparedEvents;
      try {
        const preparing =
          'prepared' in request ? request.prepared : prepare(projectId, request.events, { follower, names });
        prepared = preparing instanceof Promise ? await preparing : preparing;
      } catch (error) {
        metrics.events.inc({ result: 'refused' }, count);
        throw error;
      }
      const amount = { bytes: prepared.bytes, events: count };
      if (closing || !held.hasRoom(projectId, amount)) {
        release(prepared);
        throw closing ? stopping() : full();
      }
      held.add(projectId, amount);
      if (prepared.names) names?.meet(projectId, prepared.names, Date.now());
      return new Promise((resolve, reject) => {
        queue.push({ ...amount, projectId, prepared, submittedAt: performance.now(), resolve, reject });
        if (scheduled) return;
        scheduled = true;
        // Requests that arrive together are parsed in the same turn. They join this transaction.
        setImmediate(start);
      });
    },

    async close() {
      closing = true;
      if (held.total.events > 0) {
        await new Promise<void>((resolve) => {
          drained = resolve;
          start();
        });
      }
    },
  };
}
