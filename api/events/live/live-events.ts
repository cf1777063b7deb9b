import { setTimeout as pause } from 'node:timers/promises';
import { summarizeNewest } from '../../../db/event-partitions.ts';
import type { EventSourceQuery } from '../../../db/events.ts';
import { followHorizon } from '../../../db/horizon.ts';
import type { Pool } from '../../../db/pool.ts';
import { NoTurnError } from '../../../db/turns.ts';
import { behind, type StoredPlace } from '../../../queries/reads/stored.ts';
import type { Logger } from '../../../telemetry/logger.ts';
import type { Registry } from '../../../telemetry/metrics.ts';
import { errors } from '../../errors.ts';
import { createLiveCounts, LIVE_BOUNDS, type LiveBounds, type LiveCounts } from '../../live-bounds.ts';
import { Feed, type FeedDependencies } from './feed.ts';
import { LiveStream } from './stream.ts';

/** How long each try to move the horizon may hold up writers, in milliseconds. Most tries wait for far less. */
const SHORTEST_LOCK = 50;
const LONGEST_LOCK = 1_000;
/** How long a new listener waits for the first horizon. */
const FIRST_HORIZON = 10_000;
const RETRY_SECONDS = 10;

export interface LiveDependencies {
  pool: Pool;
  /** Sees the rows of one project at a time. */
  reader: Pool;
  registry: Registry;
  logger: Pick<Logger, 'warn'>;
  bounds?: Partial<LiveBounds> | undefined;
}

/** What somebody wants to listen to. */
export interface LiveWish {
  projectId: number;
  /** The user who listens. */
  userId: number;
  source: EventSourceQuery;
  /** Where the listener was before it lost its stream. */
  place?: StoredPlace | undefined;
  /** Answers whether the caller may still listen. */
  check: () => Promise<boolean>;
  /** How many bytes have left the stream, but not the process. */
  unsent: () => number;
}

/**
 * The live events of this process. While somebody listens, one loop looks where the horizon is, sees to it that it moves once a
 * second, and has each feed read up to it. While nobody does, nothing runs.
 */
export class LiveEvents {
  readonly bounds: LiveBounds;
  readonly #deps: LiveDependencies;
  readonly #counts: LiveCounts;
  readonly #feeds = new Map<string, { feed: Feed; streams: Set<LiveStream> }>();
  /** Whether it was told that events cannot be read. */
  #isTold = false;
  /** How many listeners each project has, with those that are about to be one. */
  readonly #projects = new Map<number, number>();
  /** How many each user has, in all projects, and which of their streams are open. */
  readonly #users = new Map<number, { listeners: number; streams: Set<LiveStream> }>();
  #listeners = 0;
  #loop: Promise<void> | undefined;
  #isClosing = false;
  readonly #stop = new AbortController();

  constructor(deps: LiveDependencies) {
    this.#deps = deps;
    this.bounds = { ...LIVE_BOUNDS, ...deps.bounds };
    this.#counts = createLiveCounts(deps.registry, {
      listeners: () => this.#listeners,
      waiting: () => this.#waiting,
    });
  }

  /** Takes the place of one more listener, or refuses. Returns what gives it back. */
  admit(projectId: number, userId: number): () => void {
    if (this.#isClosing) throw errors.unavailable('The server is stopping. Connect again.', 1);
    const own = this.#projects.get(projectId) ?? 0;
    const { listeners, perProject } = this.bounds;
    if (own >= perProject) {
      throw errors.tooMany(`At most ${perProject} streams of a project are open at once.`, RETRY_SECONDS);
    }
    const user = this.#users.get(userId) ?? { listeners: 0, streams: new Set() };
    if (this.#listeners >= listeners && !this.#makeRoom(user.listeners)) {
      throw errors.tooMany('Too many streams are open at the moment. Try again.', RETRY_SECONDS);
    }
    this.#projects.set(projectId, own + 1);
    this.#users.set(userId, user);
    user.listeners += 1;
    this.#listeners += 1;
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#listeners -= 1;
      const rest = (this.#projects.get(projectId) as number) - 1;
      if (rest > 0) this.#projects.set(projectId, rest);
      else this.#projects.delete(projectId);
      user.listeners -= 1;
      if (user.listeners === 0) this.#users.delete(userId);
    };
  }

  /**
   * Ends the oldest stream of whoever has the most, if these are more than the newcomer would have: however many projects somebody
   * has, others get a place. Its client comes back later, and goes on behind its last event.
   */
  #makeRoom(own: number): boolean {
    let most = { listeners: own + 1, streams: new Set<LiveStream>() };
    for (const one of this.#users.values()) if (one.streams.size > most.listeners) most = one;
    const [oldest] = most.streams;
    if (!oldest) return false;
    most.streams.delete(oldest);
    oldest.finish();
    return true;
  }

  /** Begins a stream. Whoever takes it ends it by destroying it. */
  async open({ projectId, userId, source, place, check, unsent }: LiveWish): Promise<LiveStream> {
    const key = JSON.stringify([projectId, source.text, source.values]);
    const upTo = this.#feeds.get(key)?.feed.upTo ?? (await this.#firstHorizon());
    if (this.#isClosing) throw errors.unavailable('The server is stopping. Connect again.', 1);
    const known = this.#feeds.get(key) ?? {
      feed: new Feed(this.#feedDependencies(projectId), projectId, source, upTo),
      streams: new Set<LiveStream>(),
    };
    this.#feeds.set(key, known);
    const { feed, streams } = known;
    const options = { bounds: this.bounds, counts: this.#counts, check, unsent };
    const stream = new LiveStream(place ?? behind(feed.upTo), options);
    streams.add(stream);
    const ofUser = this.#users.get(userId)?.streams;
    ofUser?.add(stream);
    stream.once('close', () => {
      ofUser?.delete(stream);
      streams.delete(stream);
      feed.leave(stream);
      if (streams.size > 0 || this.#feeds.get(key) !== known) return;
      this.#feeds.delete(key);
      feed.close();
    });
    if (!place) feed.join(stream);
    else if (Date.parse(place.at) < Date.now() - this.bounds.past) {
      const minutes = this.bounds.past / 60_000;
      stream.skip({ events: null, reason: `The place is older than ${minutes} minutes.` }, behind(feed.upTo));
      feed.join(stream);
    } else {
      feed.resume(stream).catch((error: unknown) => {
        this.#tell(error, feed);
        // The client comes again, with its place.
        stream.finish();
      });
    }
    this.#loop ??= this.#run();
    return stream;
  }

  /** Ends all streams. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#stop.abort();
    for (const { feed, streams } of this.#feeds.values()) {
      for (const one of streams) one.finish();
      feed.close();
    }
    await this.#loop;
  }

  #feedDependencies(projectId: number): FeedDependencies {
    const { reader } = this.#deps;
    return {
      ...{ reader, bounds: this.bounds },
      share: () => {
        const own = [...this.#feeds.values()].filter(({ feed }) => feed.projectId === projectId);
        return Math.ceil(this.bounds.eventsAtOnce / Math.max(1, own.length));
      },
      hasRoom: (bytes) => this.#waiting + bytes <= this.bounds.bytesOfAll,
    };
  }

  /** How many bytes wait for all listeners. */
  get #waiting(): number {
    let sum = 0;
    for (const { streams } of this.#feeds.values()) for (const one of streams) sum += one.waiting;
    return sum;
  }

  /** Tells once that events cannot be read, until they can be. */
  #tell(error: unknown, feed?: Feed): void {
    // A project whose queries take all its turns gets its events later.
    if (this.#isTold || this.#isClosing || feed?.isClosed || error instanceof NoTurnError) return;
    this.#isTold = true;
    this.#deps.logger.warn({ err: error }, 'live events could not be read; trying again');
  }

  /** The horizon for the first listener. */
  async #firstHorizon(): Promise<string> {
    const end = performance.now() + FIRST_HORIZON;
    for (let lock = SHORTEST_LOCK; performance.now() < end; lock = Math.min(2 * lock, LONGEST_LOCK)) {
      const horizon = await this.#horizon(lock);
      if (horizon !== undefined) return horizon;
      await this.#rest();
    }
    throw errors.unavailable('Events are being stored all the time. Try again.', RETRY_SECONDS);
  }

  #horizon(lockTimeout: number): Promise<string | undefined> {
    return followHorizon(this.#deps.pool, { every: this.bounds.closing, lockTimeout });
  }

  #rest(): Promise<void> {
    const { signal } = this.#stop;
    return pause(this.bounds.looking, undefined, { signal }).catch(() => undefined);
  }

  async #run(): Promise<void> {
    let lock = SHORTEST_LOCK;
    let last: string | undefined;
    while (this.#feeds.size > 0 && !this.#isClosing) {
      try {
        const horizon = await this.#horizon(lock);
        lock = horizon === undefined ? Math.min(2 * lock, LONGEST_LOCK) : SHORTEST_LOCK;
        if (horizon !== undefined && horizon !== last) {
          last = horizon;
          // Without it, reading takes longer.
          await summarizeNewest(this.#deps.pool, new Date()).catch((error: unknown) => this.#tell(error));
          // One that takes long keeps no other from its events.
          for (const { feed } of this.#feeds.values()) {
            feed.advance(horizon).then(
              () => {
                this.#isTold = false;
              },
              (error: unknown) => this.#tell(error, feed),
            );
          }
        }
      } catch (error) {
        this.#tell(error);
      }
      await this.#rest();
    }
    this.#loop = undefined;
  }
}
