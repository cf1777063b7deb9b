import { Readable } from 'node:stream';
import type { StoredPlace } from '../../../queries/reads/stored.ts';
import type { LiveBounds, LiveCounts } from '../../live-bounds.ts';
import { greeting, heartbeat, isBehind, type Skipped, skippedMessage } from './messages.ts';

/** Milliseconds that a client has to take the end of its stream. */
export const LEAVING = 1_000;
/** Messages that come together are written together, until they have these many bytes. */
const PIECE = 64 * 1024;

export interface StreamOptions {
  bounds: LiveBounds;
  counts: LiveCounts;
  /** Answers whether the caller may still listen. */
  check: () => Promise<boolean>;
  /** How many bytes have left the stream, but not the process. */
  unsent: () => number;
}

/**
 * The stream of one listener. What a slow client does not take waits here, up to a bound. Then events are left out, and the
 * client learns how many as soon as it takes something.
 */
export class LiveStream extends Readable {
  readonly #bounds: LiveBounds;
  readonly #counts: LiveCounts;
  readonly #unsent: () => number;
  /** Messages that are about to be written. */
  #batch: Buffer[] = [];
  #batched = 0;
  /** Up to where the listener knows what happened. */
  #place: StoredPlace;
  /** What was left out that it was not told of. */
  #skipped: Skipped | undefined;
  #pushed = 0;
  /** How much the client has taken, and when that changed. */
  #taken = 0;
  #movedAt = performance.now();
  #isOver = false;
  readonly #timers: NodeJS.Timeout[];

  constructor(place: StoredPlace, { bounds, counts, check, unsent }: StreamOptions) {
    super({ highWaterMark: bounds.bytes });
    this.#bounds = bounds;
    this.#counts = counts;
    this.#unsent = unsent;
    this.#place = place;
    this.#push(greeting(place));
    const beat = setInterval(() => this.#beat(check), bounds.beat);
    // Clients that came at once do not come back at once.
    const end = setTimeout(() => this.finish(), bounds.longest * (0.9 + 0.1 * Math.random()));
    this.#timers = [beat.unref(), end.unref()];
    this.once('close', () => this.#stopTimers());
  }

  /** It is pushed to, and never asked. */
  override _read(): void {}

  /** Up to where the listener knows what happened. */
  get place(): StoredPlace {
    return this.#place;
  }

  get isOver(): boolean {
    return this.#isOver || this.destroyed;
  }

  /** How many bytes wait for the client. */
  get waiting(): number {
    return this.#batched + this.readableLength + this.#unsent();
  }

  /** Whether the client is so far behind that events are left out. */
  get isLate(): boolean {
    return this.#skipped !== undefined;
  }

  /** Once something was left out, half of the room has to be free again. A single event may be larger than all of it. */
  get hasRoom(): boolean {
    const { bytes } = this.#bounds;
    return this.waiting <= (this.isLate ? bytes / 2 : bytes);
  }

  /** Takes an event, or leaves it out if too much waits. */
  event(message: Buffer, place: StoredPlace): void {
    // A span whose reading broke is read again, and another process may have been ahead.
    if (this.isOver || !isBehind(place, this.#place)) return;
    this.#tell();
    if (this.#skipped || !this.hasRoom) {
      this.skip({ events: 1, reason: null }, place);
      return;
    }
    this.#place = place;
    this.#counts.sent.inc();
    this.#push(message);
  }

  /** Notes that events were left out up to a place. */
  skip({ events, reason }: Skipped, place: StoredPlace): void {
    if (this.isOver || !isBehind(place, this.#place)) return;
    this.#place = place;
    if (events === 0) return;
    this.#counts.skipped.inc(events ?? 1);
    const before = this.#skipped?.events ?? (this.#skipped ? null : 0);
    this.#skipped = {
      events: events === null || before === null ? null : before + events,
      reason: reason ?? this.#skipped?.reason ?? null,
    };
    this.#tell();
  }

  /** Notes that there is nothing more up to a place. */
  passed(place: StoredPlace): void {
    if (this.isOver || !isBehind(place, this.#place)) return;
    this.#tell();
    this.#place = place;
  }

  /** Ends the stream. Who does not take the rest soon is disconnected. */
  finish(): void {
    if (this.isOver) return;
    this.#tell();
    this.#write();
    this.#isOver = true;
    this.push(null);
    setTimeout(() => this.destroy(), LEAVING).unref();
  }

  /** Tells what was left out, if there is room again. */
  #tell(): void {
    if (!this.#skipped || !this.hasRoom) return;
    this.#push(skippedMessage(this.#skipped, this.#place));
    this.#skipped = undefined;
  }

  #push(message: Buffer): void {
    this.#pushed += message.length;
    this.#batch.push(message);
    this.#batched += message.length;
    if (this.#batched >= PIECE) this.#write();
    else if (this.#batch.length === 1) setImmediate(() => this.#write());
  }

  #write(): void {
    const [first, ...others] = this.#batch.splice(0);
    this.#batched = 0;
    if (first === undefined || this.destroyed) return;
    const last = others.at(-1);
    // A large message is not copied, because other streams have it too.
    if (last !== undefined && last.length >= PIECE) {
      this.push(Buffer.concat([first, ...others.slice(0, -1)]));
      this.push(last);
    } else this.push(others.length === 0 ? first : Buffer.concat([first, ...others]));
  }

  #beat(check: () => Promise<boolean>): void {
    if (this.isOver) return;
    const taken = this.#pushed - this.waiting;
    if (this.waiting === 0 || taken !== this.#taken) this.#movedAt = performance.now();
    this.#taken = taken;
    if (performance.now() - this.#movedAt > this.#bounds.stalled) {
      this.destroy();
      return;
    }
    this.#tell();
    if (this.waiting === 0) this.#push(heartbeat(this.#place));
    void check().then((isAllowed) => {
      if (!isAllowed) this.finish();
    });
  }

  #stopTimers(): void {
    this.#isOver = true;
    for (const one of this.#timers) clearTimeout(one);
  }
}
