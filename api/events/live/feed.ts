import { setTimeout as pause } from 'node:timers/promises';
import type { EventSourceQuery } from '../../../db/events.ts';
import type { Pool } from '../../../db/pool.ts';
import { faultOf } from '../../../queries/reads/rows.ts';
import {
  behind,
  firstPart,
  readStored,
  type StoredPage,
  type StoredPlace,
  type StoredSpan,
  storedPages,
} from '../../../queries/reads/stored.ts';
import { QueryError } from '../../../queries/rules/request.ts';
import type { LiveBounds } from '../../live-bounds.ts';
import { eventMessage } from './messages.ts';
import type { LiveStream } from './stream.ts';

const ROWS_AT_ONCE = 500;
/** How much of the past is read at once, in milliseconds. */
const PART = 5_000;
/** How often it is looked whether a client has taken what waits for it, in milliseconds. */
const LOOK_EVERY = 20;

export interface FeedDependencies {
  /** Sees the rows of one project at a time. */
  reader: Pool;
  bounds: LiveBounds;
  /** How many events are read at once, of those that were stored since the last horizon. */
  share: () => number;
  /** Answers whether the process has room for an event that is larger than what usually waits. */
  hasRoom: (bytes: number) => boolean;
}

/** Who gets what is read: the listeners of a feed, or one that catches up. */
type Sink = Pick<LiveStream, 'event' | 'skip' | 'passed' | 'isOver'> & {
  /** Waits for room for an event, as long as that makes sense. */
  room: (hasRoom: () => boolean) => Promise<void>;
};

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
    const catchUp = async (patience?: number) => {
      const span = { from: stream.place, upTo: this.#upTo };
      const alone = sinkOf(() => [stream], patience);
      left -= await this.#read(span, left, alone);
      return span.upTo;
    };
    // It has its own pace, until the others are no longer ahead.
    while (!stream.isOver && (await catchUp()) !== this.#upTo);
    // What they have got since then is little, and they wait for it.
    await this.#inTurn(async () => {
      await catchUp(this.#deps.bounds.patience);
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
        const { bounds, share } = this.#deps;
        const all = sinkOf(() => [...this.#listeners], bounds.patience);
        if (!all.isOver) await this.#read({ from: behind(this.#upTo), upTo }, share(), all);
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

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => undefined);
    return result;
  }

  /** Reads the events of a span, and gives the first ones to a sink. It counts the others. Returns how many it gave. */
  async #read(span: StoredSpan, most: number, sink: Sink): Promise<number> {
    let given = 0;
    try {
      for (let { from } = span; !sink.isOver; ) {
        const part = given < most ? firstPart({ ...span, from }, PART) : { ...span, from };
        given += await this.#readPart(part, most - given, sink);
        from = behind(part.upTo);
        if (part.upTo === span.upTo) return given;
      }
    } catch (error) {
      // The conditions do not fit an event, or take too long. It would be the same with the next try.
      const fault = faultOf(error);
      if (!(fault instanceof QueryError)) throw error;
      sink.skip({ events: null, reason: fault.message }, behind(span.upTo));
    }
    return given;
  }

  async #readPart(part: StoredSpan, most: number, sink: Sink): Promise<number> {
    const pages = await storedPages(this.#deps.reader, this.#asker, this.#source, part, ROWS_AT_ONCE);
    let left = pages.reduce((sum, { events }) => sum + events, 0);
    let given = 0;
    let { from } = part;
    for (const { upTo } of pages) {
      for (let isFollowed = true; isFollowed && given < most && !sink.isOver; ) {
        const page = await this.#page({ from, upTo }, Math.min(ROWS_AT_ONCE, most - given));
        for (const row of page.rows) {
          from = { at: row.inserted_at, uuid: row.uuid };
          await this.#give(sink, eventMessage(row, from), from);
        }
        given += page.rows.length;
        left -= page.rows.length;
        isFollowed = page.isFollowed;
      }
      if (given >= most || sink.isOver) break;
    }
    if (left > 0 && given >= most) sink.skip({ events: left, reason: null }, behind(part.upTo));
    else sink.passed(behind(part.upTo));
    return given;
  }

  /** Gives an event to a sink when there is room for it, or leaves it out. */
  async #give(sink: Sink, message: Buffer, place: StoredPlace): Promise<void> {
    const { bounds, hasRoom } = this.#deps;
    const fits = () => message.length <= bounds.bytes || hasRoom(message.length);
    await sink.room(fits);
    if (fits()) sink.event(message, place);
    else sink.skip({ events: 1, reason: null }, place);
  }

  #page(span: StoredSpan, limit: number): Promise<StoredPage> {
    // What is read waits here for a client that catches up, so it is no more than may wait for it.
    const room = { limit, room: this.#deps.bounds.bytes };
    return readStored(this.#deps.reader, this.#asker, this.#source, span, room);
  }

  get #asker() {
    return { projectId: this.projectId, signal: this.#abort.signal };
  }
}

/**
 * The sink of some listeners. Whoever reads waits for those without room, but no longer than `patience` together. Who has none
 * then is late: nobody waits for it until it has taken half of what waits for it. Without `patience`, the reader waits for
 * whoever is not gone, but for no room in the process: others may take that.
 */
function sinkOf(listeners: () => readonly LiveStream[], patience?: number): Sink {
  let left = patience ?? Number.POSITIVE_INFINITY;
  const each = (work: (one: LiveStream) => void) => {
    for (const one of listeners()) work(one);
  };
  return {
    event: (message, place) => each((one) => one.event(message, place)),
    skip: (skipped, place) => each((one) => one.skip(skipped, place)),
    passed: (place) => each((one) => one.passed(place)),
    get isOver() {
      return listeners().every((one) => one.isOver);
    },
    async room(fits) {
      const isAwaited = (one: LiveStream) => !one.hasRoom && !(one.isLate && patience !== undefined);
      const isFull = () => {
        const here = listeners().filter((one) => !one.isOver);
        return here.some(isAwaited) || (here.length > 0 && patience !== undefined && !fits());
      };
      const end = performance.now() + left;
      while (isFull() && performance.now() < end) await pause(LOOK_EVERY);
      left = end - performance.now();
    },
  };
}
