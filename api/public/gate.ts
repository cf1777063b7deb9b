import { errors } from '../errors.ts';
import { Crowd, type Member } from './crowd.ts';

/** A smaller body never waits for its turn. */
const LARGE = 64 * 1024;
const RETRY_SECONDS = 1;
/** A body that has been arriving for less than so many milliseconds is not slow yet. */
const SLOW_AFTER = 5_000;
/** Milliseconds that a large body waits for its turn. A turn may never come, for example while nothing can be stored. */
const PATIENCE = 10_000;

/** How many bytes of bodies may be in memory at once. */
export interface Budget {
  /** All bodies count, as received and again as decompressed. */
  held: number;
  /**
   * Large bodies whose values are in memory count: values take many times as much memory as their bytes. A single body
   * that is larger than this has its turn when no other one is at work.
   */
  atWork: number;
  /**
   * How many large bodies may be decompressed at once. Nobody knows how large such a body becomes, so each counts until
   * it is parsed.
   */
  unpacking: number;
}

/** What one request holds; given back when it is answered. */
export interface Ticket extends Member {
  bytes: number;
  /** Of a large body whose turn it is. */
  atWork: number;
  /** Those of `bytes` that decompression made. */
  unpacked: number;
  isUnpacking: boolean;
  /** When its body began to arrive. */
  since: number;
  /** Sends its client away, and gives back what it holds. */
  giveUp: () => void;
}

const nothing = () => undefined;

export const newTicket = (): Ticket => ({
  ...{ place: 0, bytes: 0, atWork: 0, unpacked: 0, isUnpacking: false, since: 0, giveUp: nothing },
});

/**
 * Opens a gate for each product. A product has a share of its own, which no other product can use up, and all shares
 * together are at most the total.
 */
export class Gates {
  readonly #left: Budget;

  constructor(total: Budget) {
    this.#left = { ...total };
  }

  /** Throws when the product's share is more than the gates before it have left. */
  open(product: string, share: Budget): Gate {
    for (const kind of ['held', 'atWork', 'unpacking'] as const) {
      if (share[kind] > this.#left[kind]) {
        throw new Error(
          `The gate of ${product} needs ${share[kind]} (${kind}), but other products leave only ` +
            `${this.#left[kind]} of the total. Make the share smaller, or the total larger.`,
        );
      }
    }
    this.#left.held -= share.held;
    this.#left.atWork -= share.atWork;
    this.#left.unpacking -= share.unpacking;
    return new Gate(share);
  }
}

/** Those who wait for a turn, in the order in which they came. */
class Queue {
  readonly #patience: number;
  readonly #waiting = new Set<{ hasRoom: () => boolean; start: () => void }>();

  constructor(patience: number) {
    this.#patience = patience;
  }

  /** Begins when there is room: at once, or after those who came before. Who waits too long is refused. */
  take(hasRoom: () => boolean, begin: () => void): void | Promise<void> {
    if (this.#waiting.size === 0 && hasRoom()) {
      begin();
      return;
    }
    return new Promise((resolve, reject) => {
      const turn = {
        hasRoom,
        start: () => {
          clearTimeout(late);
          begin();
          resolve();
        },
      };
      const late = setTimeout(() => {
        this.#waiting.delete(turn);
        this.startNext();
        reject(refusal());
      }, this.#patience);
      this.#waiting.add(turn);
    });
  }

  startNext(): void {
    for (const turn of this.#waiting) {
      if (!turn.hasRoom()) return;
      this.#waiting.delete(turn);
      turn.start();
    }
  }
}

const refusal = () => errors.unavailable('Too many large requests at once. Send it again.', RETRY_SECONDS);

/** Keeps the memory that the bodies of one product take bounded, however many clients send large ones at once. */
export class Gate {
  readonly #share: Budget;
  readonly #toWork: Queue;
  readonly #toUnpack: Queue;
  #held = 0;
  #atWork = 0;
  #unpacking = 0;
  readonly #now: () => number;
  /** The bodies of which bytes are still to come. */
  readonly #arriving = new Crowd<Ticket>();

  constructor(share: Budget, patience = PATIENCE, now: () => number = () => performance.now()) {
    this.#share = share;
    this.#toWork = new Queue(patience);
    this.#toUnpack = new Queue(patience);
    this.#now = now;
  }

  get held(): number {
    return this.#held;
  }

  /** A body begins to arrive. `giveUp` sends its client away, and gives back what it holds. */
  begin(ticket: Ticket, giveUp: () => void): void {
    ticket.since = this.#now();
    ticket.giveUp = giveUp;
    this.#arriving.add(ticket);
  }

  /** A body is there, or is not waited for any more. */
  end(ticket: Ticket): void {
    this.#arriving.remove(ticket);
    ticket.giveUp = nothing;
  }

  /**
   * Counts bytes that a request takes. When the share is used up, the slowest clients are sent away; throws a refusal if
   * none is slow.
   */
  hold(ticket: Ticket, bytes: number): void {
    if (this.#held + bytes > this.#share.held) this.#giveUpSlow(ticket, bytes);
    if (this.#held + bytes > this.#share.held) throw refusal();
    this.#held += bytes;
    ticket.bytes += bytes;
  }

  /** What the decompression of a body works with, until the body enters or leaves. */
  memoryOf(ticket: Ticket): UnpackingMemory {
    return new UnpackingMemory(this, ticket);
  }

  /** Lets a body be decompressed, in the order they came. */
  unpack(ticket: Ticket): void | Promise<void> {
    if (ticket.isUnpacking) return;
    // What is found inside of a body that was being parsed: it takes its place again when it enters.
    this.#rest(ticket);
    return this.#toUnpack.take(
      () => this.#unpacking < this.#share.unpacking,
      () => {
        this.#unpacking += 1;
        ticket.isUnpacking = true;
      },
    );
  }

  grow(ticket: Ticket, bytes: number): void {
    this.hold(ticket, bytes);
    ticket.unpacked += bytes;
  }

  shrink(ticket: Ticket, bytes: number): void {
    this.#held -= bytes;
    ticket.bytes -= bytes;
    ticket.unpacked -= bytes;
  }

  /** Lets a body of this size be parsed: a small one at once, a large one when there is room, in the order they came. */
  enter(ticket: Ticket, bytes: number): void | Promise<void> {
    this.shrink(ticket, ticket.unpacked);
    this.hold(ticket, bytes);
    if (bytes < LARGE || ticket.atWork > 0) {
      this.#endUnpacking(ticket);
      return;
    }
    return this.#toWork.take(
      () => this.#atWork === 0 || this.#atWork + bytes <= this.#share.atWork,
      () => {
        this.#begin(ticket, bytes);
        this.#endUnpacking(ticket);
      },
    );
  }

  /** The body that is being parsed will need so many bytes more than its own, so other bodies wait longer. */
  expect(ticket: Ticket, bytes: number): void {
    if (bytes < LARGE) return;
    this.#begin(ticket, bytes);
  }

  /** Gives back all that the request holds. A second call does nothing. */
  leave(ticket: Ticket): void {
    this.#held -= ticket.bytes;
    ticket.bytes = 0;
    ticket.unpacked = 0;
    this.#endUnpacking(ticket);
    this.#rest(ticket);
  }

  /** Otherwise a few clients that trickle could keep the memory from all others. */
  #giveUpSlow(asking: Ticket, bytes: number): void {
    const now = this.#now();
    const rate = ({ bytes: received, since }: Ticket) => received / (now - since);
    const slow = this.#arriving
      .all()
      .filter((ticket) => ticket !== asking && ticket.bytes > 0 && now - ticket.since >= SLOW_AFTER);
    for (const ticket of slow.toSorted((a, b) => rate(a) - rate(b))) {
      if (this.#held + bytes <= this.#share.held) return;
      ticket.giveUp();
    }
  }

  #begin(ticket: Ticket, bytes: number): void {
    this.#atWork += bytes;
    ticket.atWork += bytes;
  }

  #rest(ticket: Ticket): void {
    this.#atWork -= ticket.atWork;
    ticket.atWork = 0;
    this.#toWork.startNext();
  }

  #endUnpacking(ticket: Ticket): void {
    if (!ticket.isUnpacking) return;
    ticket.isUnpacking = false;
    this.#unpacking -= 1;
    this.#toUnpack.startNext();
  }
}

/** The memory of one request, for what decompresses its body. */
class UnpackingMemory {
  readonly #gate: Gate;
  readonly #ticket: Ticket;

  constructor(gate: Gate, ticket: Ticket) {
    this.#gate = gate;
    this.#ticket = ticket;
  }

  unpack(): void | Promise<void> {
    return this.#gate.unpack(this.#ticket);
  }

  grow(bytes: number): void {
    this.#gate.grow(this.#ticket, bytes);
  }

  shrink(bytes: number): void {
    this.#gate.shrink(this.#ticket, bytes);
  }
}
