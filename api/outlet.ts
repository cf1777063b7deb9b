import { Readable } from 'node:stream';

/** Bytes that go to the client at once, and wait for it at most. The first ones are held back until there are as many. */
const PIECE = 64 * 1024;

/** The client takes too little of its answer. */
export class SlowClientError extends Error {
  override readonly name = 'SlowClientError';
}

/**
 * An answer that is sent while it is made, as fast as its client takes it. Whoever makes it writes bytes in order, and then says
 * that it has ended or failed.
 */
export class Outlet {
  /** What is sent. It fails where the answer fails. */
  readonly stream: Readable;
  /** Resolves with the first piece, or with the end of a shorter answer. Until then, a failure can still be told: it rejects. */
  readonly begun: Promise<void>;
  readonly #begun = Promise.withResolvers<void>();
  readonly #closed = new AbortController();
  readonly #patience: number;
  #isBegun = false;
  #held: Buffer[] = [];
  #heldBytes = 0;
  #room: PromiseWithResolvers<void> | undefined;

  /** `patience`: the milliseconds in which a client takes a piece. */
  constructor(patience: number) {
    this.#patience = patience;
    this.begun = this.#begun.promise;
    this.begun.catch(() => undefined);
    this.stream = new Readable({
      highWaterMark: PIECE,
      read: () => this.#room?.resolve(),
      destroy: (error, done) => {
        this.#closed.abort(error ?? new Error('The answer is not sent any further.'));
        this.#room?.reject(this.#closed.signal.reason);
        done(error);
      },
    });
  }

  /** Is aborted when nothing is sent any more. */
  get signal(): AbortSignal {
    return this.#closed.signal;
  }

  /** Sends a copy of the bytes. Resolves when there is room for more; rejects when nothing is sent any more. */
  async write(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length; at += PIECE) {
      this.signal.throwIfAborted();
      const piece = Buffer.from(bytes.subarray(at, at + PIECE));
      const isFull = this.#isBegun ? !this.stream.push(piece) : this.#hold(piece);
      if (isFull) await this.#untilRoom();
    }
  }

  end(): void {
    if (!this.#isBegun) this.#begin();
    this.stream.push(null);
  }

  /** Breaks the answer off, or lets `begun` reject if nothing is sent yet. */
  fail(error: Error): void {
    this.#begun.reject(error);
    this.stream.destroy(error);
  }

  /** Whether some of the answer was given away already. */
  get isBegun(): boolean {
    return this.#isBegun;
  }

  /** Returns whether the client has as much as it can take. */
  #hold(piece: Buffer): boolean {
    this.#held.push(piece);
    this.#heldBytes += piece.length;
    return this.#heldBytes >= PIECE && this.#begin();
  }

  #begin(): boolean {
    const held = Buffer.concat(this.#held);
    this.#held = [];
    this.#isBegun = true;
    const isFull = held.length > 0 && !this.stream.push(held);
    this.#begun.resolve();
    return isFull;
  }

  async #untilRoom(): Promise<void> {
    this.#room = Promise.withResolvers();
    const late = setTimeout(() => {
      const text = `The client took less than ${PIECE} bytes in ${this.#patience / 1000} seconds.`;
      this.fail(new SlowClientError(text));
    }, this.#patience);
    try {
      await this.#room.promise;
    } finally {
      clearTimeout(late);
      this.#room = undefined;
    }
  }
}
