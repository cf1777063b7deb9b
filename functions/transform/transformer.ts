import type { CapturedEvent } from '../../capture/captured-event.ts';
import type { Notices } from '../../capture/parse/notices.ts';
import type { TransformEvents, TransformedProject } from '../../capture/transform.ts';
import { nextTurn } from '../../db/loop-turns.ts';
import type { HostOptions } from '../../hog/host/index.ts';
import { ThreadError, type ThreadErrorCode, ThreadPool } from '../../hog/threads/pool.ts';
import { refuse } from '../../refusals.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { Registry } from '../../telemetry/metrics.ts';
import { cacheOfSize } from '../../values/cache-of-size.ts';
import { depthOf, withLeastDepth } from '../../values/function-depth.ts';
import { Ledger } from '../ledger.ts';
import { transformationVersion } from '../rows/transformations.ts';
import { type Applied, type Room, Transformations } from './apply.ts';
import { MainThreadBudget } from './budget.ts';
import type { Transformable } from './definition.ts';
import type { TransformAnswer, TransformJob } from './job.ts';
import { type LoadDependencies, Loader } from './load.ts';
import { createTransformMetrics, type Result } from './metrics.ts';
import { Tally, type Told } from './tally.ts';
import { tooMuch, Waiting } from './waiting.ts';

export interface TransformerOptions extends Omit<LoadDependencies, 'pool'> {
  pool: LoadDependencies['pool'];
  logger: Pick<Logger, 'warn'>;
  registry?: Registry | undefined;
  /** The location of an address. */
  place?: HostOptions['place'];
  /** The file with the locations of addresses, for threads. */
  geoip?: string | undefined;
  threads?: number;
  flushEvery?: number;
}

export interface Transformer {
  transform: TransformEvents;
  /** When it resolves, what happened so far is in the tables. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** Of a program in the thread that receives events. One that needs more runs in another thread. */
const ROOM: Room = { milliseconds: 10, memory: 16 * 1024 * 1024 };
/** How much processor time the events of one request may take, in milliseconds. */
const OF_A_REQUEST = 5_000;
/** Of a thread: processor time of a job in milliseconds, its events, and when the thread is ended. */
const OF_A_JOB = 1_000;
const EVENTS_OF_A_JOB = 200;
const BYTES_OF_A_JOB = 1024 * 1024;
const LONGEST_JOB = 30_000;
const givenUpBecause = (code: ThreadErrorCode): string =>
  code === 'unsent'
    ? 'What the transformations made of the event nests too deep.'
    : `The transformations took too much ${code === 'timeout' ? 'time' : 'memory'} and were ended.`;
const MAX_WAITING = 400;
const MAX_WAITING_OF_ONE = 40;
/** What programs may return for a request, in bytes by estimate: for all of it, and for each of its events. */
const MOST_RESULTS = 32 * 1024 * 1024;
const MOST_RESULTS_OF_EVENT = 4 * 1024;
/** How much the transformations of projects may take that are kept. */
const KNOWN_BYTES = 64 * 1024 * 1024;
/** How long a request waits, in milliseconds. */
const PATIENCE = 60_000;
const RETRY_SECONDS = 5;
const NO_REASONS: ReadonlyMap<string, string> = new Map();

/** The events of a request, on their way. */
interface Request {
  transformations: Transformations;
  events: CapturedEvent[];
  notices: Pick<Notices, 'skip'>;
  tally: Tally;
  /** Those that are stored. */
  kept: CapturedEvent[];
  /** How many are done. */
  at: number;
  /** How much processor time they took in threads, in milliseconds. */
  spent: number;
  /** What programs returned for them. */
  size: number;
  results: Map<Result, number>;
  /** About how much it takes in memory. */
  bytes: number;
}

/**
 * Runs the transformations of projects on the events of their requests. It does so at once, in the thread that receives the
 * events, as long as they are quick. Those that take long run in other threads, and only their project waits.
 */
export function createTransformer(options: TransformerOptions): Transformer {
  return new RunningTransformer(options);
}

class RunningTransformer implements Transformer {
  readonly #options: TransformerOptions;
  readonly #loader: Loader;
  readonly #budget = new MainThreadBudget();
  readonly #waiting = new Waiting();
  readonly #known = cacheOfSize<number, Transformations>(KNOWN_BYTES, ({ chain }) => chain.size);
  readonly #loading = new Map<number, { version: number; done: Promise<Transformations | undefined> }>();
  readonly #threads: ThreadPool<TransformJob, TransformAnswer>;
  readonly #ledger: Ledger;
  readonly #metrics: ReturnType<typeof createTransformMetrics>;

  constructor(options: TransformerOptions) {
    this.#options = options;
    this.#loader = new Loader(options);
    this.#ledger = new Ledger({ ...options, queryable: options.pool });
    this.#metrics = createTransformMetrics(options.registry);
    this.#threads = new ThreadPool({
      entry: new URL('./thread.ts', import.meta.url),
      // One more than needed: one project never has all threads.
      ...{ threads: options.threads ?? 2, maxWaiting: MAX_WAITING, maxWaitingOfOne: MAX_WAITING_OF_ONE },
    });
  }

  transform: TransformEvents = (project, events, notices) => {
    const { transformations: version, bytes = 0 } = project;
    if (version === null || events.length === 0) return events;
    const known = this.#known.get(project.id);
    if (version !== undefined && known && known.chain.version >= version) {
      return this.#begin(known, { events, notices, bytes });
    }
    const leave = this.#waiting.enter(project.id, bytes);
    return this.#ready(project)
      .finally(leave)
      .then((found) => (found ? this.#begin(found, { events, notices, bytes }) : events));
  };

  async flush(): Promise<void> {
    await this.#ledger.flush();
  }

  async close(): Promise<void> {
    await Promise.all([this.#threads.close(), this.#ledger.close()]);
  }

  async #ready({ id, transformations }: TransformedProject): Promise<Transformations | undefined> {
    try {
      const version = transformations ?? (await transformationVersion(this.#options.pool, id));
      if (version === null) return undefined;
      const known = this.#known.get(id);
      if (known && known.chain.version >= version) return known;
      return await this.#load(id, version);
    } catch (error) {
      this.#options.logger.warn({ err: error, project_id: id }, 'transformations could not be loaded');
      throw refuse.unavailable(
        'The transformations of the project cannot be loaded at the moment. Send the events again.',
        RETRY_SECONDS,
      );
    }
  }

  /** Requests that arrive meanwhile wait for the same. */
  #load(projectId: number, version: number): Promise<Transformations | undefined> {
    const loading = this.#loading.get(projectId);
    if (loading && loading.version >= version) return loading.done;
    const done = this.#learn(projectId).finally(() => {
      if (this.#loading.get(projectId)?.done === done) this.#loading.delete(projectId);
    });
    this.#loading.set(projectId, { version, done });
    return done;
  }

  async #learn(projectId: number): Promise<Transformations | undefined> {
    const chain = await this.#loader.load(projectId);
    if (!chain) {
      this.#known.delete(projectId);
      return undefined;
    }
    const { place } = this.#options;
    const found = new Transformations(chain, { clock: () => performance.now(), place, room: ROOM });
    await this.#ledger.look([projectId]);
    // A newer one may have come first.
    const known = this.#known.get(projectId);
    if (known && known.chain.version > chain.version) return known;
    this.#known.set(projectId, found);
    return found;
  }

  #begin(
    transformations: Transformations,
    given: Pick<Request, 'events' | 'notices' | 'bytes'>,
  ): CapturedEvent[] | Promise<CapturedEvent[]> {
    const request: Request = {
      ...{ ...given, transformations, kept: [], at: 0, spent: 0, size: 0, results: new Map() },
      tally: new Tally(),
    };
    let isDone = true;
    try {
      isDone = this.#isHere(transformations) && this.#here(request);
      return isDone ? request.kept : this.#elsewhere(request);
    } finally {
      if (isDone) this.#told(request);
    }
  }

  #isHere(transformations: Transformations): boolean {
    const { place, geoip } = this.#options;
    const lacksPlaces = transformations.needsPlaces && !place && geoip !== undefined;
    return (
      !lacksPlaces && !transformations.needsThread && this.#budget.hasTime(transformations.chain.projectId)
    );
  }

  /** Goes on with a request in this thread. Returns whether it is done. */
  #here(request: Request): boolean {
    const { transformations, events, tally } = request;
    const { projectId } = transformations.chain;
    const suspended = this.#ledger.suspended(projectId) ?? NO_REASONS;
    while (request.at < events.length) {
      if (!this.#budget.hasTurn) return false;
      const event = events[request.at] as CapturedEvent;
      const began = performance.now();
      const applied = transformations.apply(event, suspended, tally);
      const took = performance.now() - began;
      this.#budget.spent(projectId, took);
      this.#metrics.seconds.inc({ thread: 'main' }, took / 1_000);
      if (applied.verdict === 'heavy') {
        this.#budget.exile(projectId);
        return false;
      }
      this.#settle(request, applied);
    }
    return true;
  }

  /** Ends a request that needs more than this turn, here and in other threads. */
  async #elsewhere(request: Request): Promise<CapturedEvent[]> {
    const { transformations, events } = request;
    const leave = this.#waiting.enter(transformations.chain.projectId, request.bytes);
    try {
      const end = performance.now() + PATIENCE;
      while (request.at < events.length) {
        await nextTurn();
        if (performance.now() > end) throw tooMuch();
        const isHere = this.#isHere(transformations);
        if (isHere && this.#here(request)) break;
        if (!isHere) await this.#inThread(request, jobSize(request));
      }
    } finally {
      leave();
      this.#told(request);
    }
    return request.kept;
  }

  /** Sends the next events of a request to a thread. */
  async #inThread(request: Request, most: number): Promise<void> {
    const { transformations, events, at, tally } = request;
    const { chain } = transformations;
    const some = events.slice(at, at + most);
    const left = OF_A_REQUEST - request.spent;
    if (left <= 0) {
      this.#settle(request, this.#givenUp(request, 'The transformations of a request took too long.'));
      return;
    }
    const job: TransformJob = {
      ...{ projectId: chain.projectId, version: chain.version, events: some.map(transformable) },
      suspended: [...(this.#ledger.suspended(chain.projectId) ?? [])],
      ...{ milliseconds: Math.min(left, OF_A_JOB), geoip: this.#options.geoip },
    };
    const began = performance.now();
    try {
      let answer = await this.#run(job);
      if (answer.needsChain) answer = await this.#run({ ...job, chain });
      if (answer.needsChain) throw new Error('a thread forgets transformations at once');
      request.spent += answer.milliseconds;
      this.#metrics.seconds.inc({ thread: 'other' }, answer.milliseconds / 1_000);
      tally.add(answer.told);
      for (const one of answer.applied) this.#settle(request, one);
    } catch (error) {
      if (!(error instanceof ThreadError) || error.code === 'failed') throw error;
      if (error.code === 'busy') {
        throw tooMuch();
      }
      // A program has ended the thread. Alone, each event shows whether it was the one.
      if (some.length > 1) return this.#inThread(request, 1);
      request.spent += performance.now() - began;
      this.#settle(request, this.#givenUp(request, givenUpBecause(error.code)));
    }
  }

  #givenUp({ transformations, events, at, tally }: Request, message: string): Applied {
    return transformations.giveUp(events[at] as CapturedEvent, message, tally);
  }

  #run(job: TransformJob): Promise<TransformAnswer> {
    return this.#threads.run(job, { limitMs: LONGEST_JOB, usedMs: 0 }, String(job.projectId));
  }

  /** Does with the next event of a request what was decided. */
  #settle(request: Request, applied: Applied): void {
    const event = request.events[request.at] as CapturedEvent;
    let decided = applied;
    if (applied.verdict === 'kept') {
      request.size += applied.size;
      const most = MOST_RESULTS + MOST_RESULTS_OF_EVENT * request.events.length;
      if (request.size > most && applied.changes.length > 0) {
        decided = this.#givenUp(request, 'The transformations of a request returned too much data.');
      }
    }
    request.at += 1;
    if (decided.verdict === 'kept') {
      if (decided.changes.length > 0) {
        event.event = decided.event;
        event.distinct_id = decided.distinct_id;
        // No transformation may hide which functions have led to an event: a circle of them would be endless.
        event.properties = withLeastDepth(decided.properties, depthOf(event.properties));
        event.transformations = decided.changes;
        const { $ip: ip } = decided.properties;
        event.ip = typeof ip === 'string' ? ip : undefined;
      }
      request.kept.push(event);
      count(request, decided.changes.length > 0 ? 'changed' : 'unchanged');
    } else if (decided.verdict === 'dropped') {
      count(request, decided.isFault ? 'dropped_on_error' : 'dropped');
      if (decided.isFault) {
        request.notices.skip('transformation_failed', event.index, { function_id: decided.by });
      }
    } else if (decided.verdict === 'refused') {
      count(request, 'refused');
      throw refuse.unavailable(
        'A transformation of the project failed, and the event must not be stored without it. Send the events again.',
        RETRY_SECONDS,
      );
    }
  }

  #told({ transformations, tally, results }: Request): void {
    for (const [result, events] of results) this.#metrics.events.inc({ result }, events);
    tell(this.#ledger, transformations.chain.projectId, tally.told);
  }
}

function count({ results }: Request, result: Result): void {
  results.set(result, (results.get(result) ?? 0) + 1);
}

/** How many events go to a thread at once. Sending them takes this thread some time, too. */
const jobSize = ({ bytes, events }: Request): number =>
  Math.max(1, Math.min(EVENTS_OF_A_JOB, Math.floor((BYTES_OF_A_JOB * events.length) / Math.max(bytes, 1))));

const transformable = ({
  uuid,
  event,
  distinct_id,
  properties,
  timestamp,
  received_at,
}: CapturedEvent): Transformable => ({ uuid, event, distinct_id, properties, timestamp, received_at });

function tell(ledger: Ledger, projectId: number, { counts, logs, costs }: Told): void {
  for (const [functionId, kind, name, count] of counts) {
    const own = { projectId, functionId, instanceId: functionId, logs: [] };
    ledger.add({ ...own, counts: [{ kind, name, count }] });
  }
  const now = Date.now();
  for (const [index, { functionId, uuid, level, message }] of logs.entries()) {
    const timestamp = new Date(now + index).toISOString();
    ledger.add({
      projectId,
      functionId,
      instanceId: uuid,
      counts: [],
      logs: [{ level, timestamp, message }],
    });
  }
  for (const [functionId, cost] of costs) ledger.charge({ projectId, functionId, cost });
}
