import { setTimeout as pause } from 'node:timers/promises';
import type { EventSourceQuery } from '../../../db/events.ts';
import type { Pool } from '../../../db/pool.ts';
import { faultOf } from '../../../queries/reads/rows.ts';
import {
  behind,
  countStored,
  readStored,
  type StoredPage,
  type StoredSpan,
} from '../../../queries/reads/stored.ts';
import { QueryError } from '../../../queries/rules/request.ts';
import type { LiveBounds } from '../../live-bounds.ts';
import { eventMessage } from './messages.ts';
import type { LiveStream } from './stream.ts';

const ROWS_AT_ONCE = 500;
const BYTES_AT_ONCE = 4 * 1024 * 1024;
/** How often it is looked whether a client has taken what waits for it, in milliseconds. */
const LOOK_EVERY = 50;

export interface FeedDependencies {
  /** Sees the rows of one project at a time. */
  reader: Pool;
  bounds: LiveBounds;
}

/** Who gets what is read: the listeners of a feed, or one that catches up. */
type Sink = Pick<LiveStream, 'event' | 'skip' | 'passed' | 'isOver'>;

/**
 * The events of a project that pass the same conditions, read once for all their listeners. It reads one span after the other:
 * each begins where the last one ended, and ends at a horizon.
 */
export class Feed {
  readonly projectId: number;
  readonly #deps: FeedDependencies;
  readonly #source: EventSourceQuery;
  readonly #listeners = new Set<LiveStream>();
  readonly #abort = new AbortController();
  /** All events up to this horizon were read. */
  #upTo: string;
  #turn: Promise<unknown> = Promise.resolve();
  #isReading = false;

  constructor(deps: FeedDependencies, projectId: number, source: EventSourceQuery, upTo: string) {
    this.#deps = deps;
    this.projectId = projectId;
    this.#source = source;
    this.#upTo = upTo;
  }

  /** The horizon up to which all events were read. */
  get upTo(): string {
    return this.#upTo;
  }

  /** Adds a listener that wants the events from now on. */
  join(stream: LiveStream): void {
    this.#listeners.add(stream);
  }

  /** Adds a listener that wants the events behind a place. It gets those that the others have, and then those of all. */
  async resume(stream: LiveStream): Promise<void> {
    let left = this.#deps.bounds.eventsOfPast;
    /** Reads up to where the others are. */
    const catchUp = async (rest?: () => Promise<void>) => {
      const upTo = this.#upTo;
      left -= await this.#read({ from: stream.place, upTo }, left, stream, rest);
      return upTo;
    };
    // It has its own pace, until the others are no longer ahead.
    while ((await catchUp(() => taken(stream))) !== this.#upTo && !stream.isOver);
    // What they have got since then is little, and they wait for it.
    await this.#inTurn(async () => {
      await catchUp();
      if (!stream.isOver) this.#listeners.add(stream);
    });
  }

  leave(stream: LiveStream): void {
    this.#listeners.delete(stream);
  }

  /** Reads up to a horizon, unless it still reads. Then the next horizon is soon enough. */
  async advance(upTo: string): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      await this.#inTurn(async () => {
        const span = { from: behind(this.#upTo), upTo };
        if (this.#listeners.size > 0) await this.#read(span, this.#deps.bounds.eventsAtOnce, this.#all);
        this.#upTo = upTo;
      });
    } finally {
      this.#isReading = false;
    }
  }

  /** Whether nobody listens any more. */
  get isClosed(): boolean {
    return this.#abort.signal.aborted;
  }

  /** Ends what is being read. */
  close(): void {
    this.#abort.abort(new Error('Nobody listens any more.'));
  }

  readonly #all: Sink = {
    event: (message, place) => this.#each((one) => one.event(message, place)),
    skip: (skipped, place) => this.#each((one) => one.skip(skipped, place)),
    passed: (place) => this.#each((one) => one.passed(place)),
    isOver: false,
  };

  #each(work: (one: LiveStream) => void): void {
    for (const one of this.#listeners) work(one);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => undefined);
    return result;
  }

  /** Reads the events of a span, and gives the first ones to a sink. It counts the others. Returns how many it gave. */
  async #read(span: StoredSpan, most: number, sink: Sink, rest?: () => Promise<void>): Promise<number> {
    const end = behind(span.upTo);
    let given = 0;
    try {
      for (let { from } = span; !sink.isOver; ) {
        const limit = Math.min(ROWS_AT_ONCE, most - given);
        if (limit <= 0) {
          const events = await countStored(this.#deps.reader, this.#asker, this.#source, { ...span, from });
          sink.skip({ events, reason: null }, end);
          return given;
        }
        const page = await this.#page({ ...span, from }, limit);
        for (const row of page.rows) {
          from = { at: row.inserted_at, uuid: row.uuid };
          sink.event(eventMessage(row, from), from);
        }
        given += page.rows.length;
        if (!page.isFollowed) {
          sink.passed(end);
          return given;
        }
        await rest?.();
      }
    } catch (error) {
      // The conditions do not fit an event, or take too long. It would be the same with the next try.
      const fault = faultOf(error);
      if (!(fault instanceof QueryError)) throw error;
      sink.skip({ events: null, reason: fault.message }, end);
    }
    return given;
  }

  #page(span: StoredSpan, limit: number): Promise<StoredPage> {
    const room = { limit, room: BYTES_AT_ONCE };
    return readStored(this.#deps.reader, this.#asker, this.#source, span, room);
  }

  get #asker() {
    return { projectId: this.projectId, signal: this.#abort.signal };
  }
}

/** Waits until a client has taken what waits for it. */
async function taken(stream: LiveStream): Promise<void> {
  while (!stream.isOver && stream.waiting > 0) await pause(LOOK_EVERY);
}
