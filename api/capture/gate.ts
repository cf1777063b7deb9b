import { errors } from '../errors.ts';

/** Bytes of bodies, as received and as decompressed, that all requests together may hold. */
const MOST_HELD = 160 * 1024 * 1024;
/** A body from here on is large: its values take many times its bytes. */
const LARGE = 512 * 1024;
/** So many large bodies are turned into events at once; the others wait for their turn. */
const LARGE_AT_ONCE = 2;
const RETRY_SECONDS = 1;

/** What one request holds; given back when it is answered. */
export interface Ticket {
  bytes: number;
  large: boolean;
}

/** Keeps the memory that bodies take bounded, however many clients send large ones at once. */
export class Gate {
  readonly #mostHeld: number;
  #held = 0;
  #large = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(mostHeld = MOST_HELD) {
    this.#mostHeld = mostHeld;
  }

  get held(): number {
    return this.#held;
  }

  hold(ticket: Ticket, bytes: number): void {
    if (this.#held + bytes > this.#mostHeld) {
      throw errors.unavailable('Too many large requests at once. Send it again.', RETRY_SECONDS);
    }
    this.#held += bytes;
    ticket.bytes += bytes;
  }

  /** Lets a body of this size be parsed: small ones at once, large ones one after another. */
  enter(ticket: Ticket, bytes: number): void | Promise<void> {
    this.hold(ticket, bytes);
    if (bytes < LARGE || ticket.large) return;
    if (this.#large < LARGE_AT_ONCE) {
      this.#large += 1;
      ticket.large = true;
      return;
    }
    return new Promise((resolve) => {
      this.#waiting.push(() => {
        ticket.large = true;
        resolve();
      });
    });
  }

  leave(ticket: Ticket): void {
    this.#held -= ticket.bytes;
    ticket.bytes = 0;
    if (!ticket.large) return;
    ticket.large = false;
    const next = this.#waiting.shift();
    // The place goes to who waits longest; it is not free in between.
    if (next) next();
    else this.#large -= 1;
  }
}
