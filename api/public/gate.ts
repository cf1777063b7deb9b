import { errors } from '../errors.ts';

/** Bytes of bodies, as received and as decompressed, that all requests together may hold. */
const MOST_HELD = 160 * 1024 * 1024;
/** A smaller body never waits for its turn. */
const LARGE = 64 * 1024;
/** Bytes of large bodies that are events at the same time: their values take many times as much memory. */
const MOST_AT_WORK = 12 * 1024 * 1024;
/** What an event takes beside its own bytes until it is committed. */
const EVENT_BYTES = 1024;
const RETRY_SECONDS = 1;
/** Milliseconds that a large body waits for its turn: while nothing can be stored, none comes. */
const PATIENCE = 10_000;

/** What one request holds; given back when it is answered. */
export interface Ticket {
  bytes: number;
  /** Of a large body whose turn it is. */
  atWork: number;
}

/** Keeps the memory that bodies take bounded, however many clients send large ones at once. */
export class Gate {
  readonly #mostHeld: number;
  readonly #patience: number;
  #held = 0;
  #atWork = 0;
  /** In the order in which they came. */
  readonly #waiting = new Set<{ bytes: number; start: () => void }>();

  constructor(mostHeld = MOST_HELD, patience = PATIENCE) {
    this.#mostHeld = mostHeld;
    this.#patience = patience;
  }

  get held(): number {
    return this.#held;
  }

  hold(ticket: Ticket, bytes: number): void {
    if (this.#held + bytes > this.#mostHeld) throw this.#refusal();
    this.#held += bytes;
    ticket.bytes += bytes;
  }

  /** Lets a body of this size be parsed: small ones at once, large ones when there is room, in their order. */
  enter(ticket: Ticket, bytes: number): void | Promise<void> {
    this.hold(ticket, bytes);
    if (bytes < LARGE || ticket.atWork > 0) return;
    if (this.#waiting.size === 0 && this.#hasRoom(bytes)) {
      this.#begin(ticket, bytes);
      return;
    }
    return new Promise((resolve, reject) => {
      const turn = {
        bytes,
        start: () => {
          clearTimeout(late);
          this.#begin(ticket, bytes);
          resolve();
        },
      };
      const late = setTimeout(() => {
        this.#waiting.delete(turn);
        this.#startNext();
        reject(this.#refusal());
      }, this.#patience);
      this.#waiting.add(turn);
    });
  }

  /** A body that is being parsed turns out to hold so many events: others wait the longer for it. */
  expect(ticket: Ticket, events: number): void {
    const bytes = events * EVENT_BYTES;
    if (bytes < LARGE) return;
    this.#begin(ticket, bytes);
  }

  leave(ticket: Ticket): void {
    this.#held -= ticket.bytes;
    this.#atWork -= ticket.atWork;
    ticket.bytes = 0;
    ticket.atWork = 0;
    this.#startNext();
  }

  #startNext(): void {
    for (const turn of this.#waiting) {
      if (!this.#hasRoom(turn.bytes)) return;
      this.#waiting.delete(turn);
      turn.start();
    }
  }

  #refusal(): Error {
    return errors.unavailable('Too many large requests at once. Send it again.', RETRY_SECONDS);
  }

  /** The largest body has its turn too, alone. */
  #hasRoom(bytes: number): boolean {
    return this.#atWork === 0 || this.#atWork + bytes <= MOST_AT_WORK;
  }

  #begin(ticket: Ticket, bytes: number): void {
    this.#atWork += bytes;
    ticket.atWork += bytes;
  }
}
