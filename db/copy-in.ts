import type { Socket } from 'node:net';
import type { Connection as PgConnection, Submittable } from 'pg';
import type { FollowUp } from './follow-up.ts';
import type { Transaction } from './pool.ts';

/** How many bytes of a COPY may wait in memory for Postgres. */
const HIGH_WATER = 2 * 1024 * 1024;
const COPY_DONE = Buffer.of(0x63, 0, 0, 0, 4);

interface Connection {
  stream: Socket;
  query(text: string): void;
}

/** Gives a COPY its data. */
export type Feed = (sink: CopySink) => void | Promise<void>;

/** Takes the data of a COPY, as complete CopyData messages that the caller makes. */
export interface CopySink {
  /** Sends a message. Calls `sent` when the memory of the message is free again. */
  write(message: Buffer, sent: (message: Buffer) => void): void;
  /** Resolves when there is room for more. Rejects when the COPY failed. */
  room(): Promise<void>;
}

/** A query that is sent with a COPY and answered after it. */
interface Next {
  send(connection: PgConnection): void;
  /** Resolves when the answers have arrived. */
  receive(): Promise<void>;
}

/**
 * Statements in one simple query, of which one is a COPY FROM STDIN. Its data follows the
 * query at once, without waiting for Postgres to ask for it. So everything takes one round trip, and nothing is copied
 * or parsed between the encoder of the rows and the socket. If a statement fails, Postgres drops the data that follows.
 */
class CopyIn implements Submittable {
  readonly rows: (string | null)[][] = [];
  readonly done: Promise<void>;
  readonly #text: string;
  readonly #feed: Feed;
  /** Sent after the data. */
  readonly #next: Next | undefined;
  #isNextSent = false;
  #settled = false;
  #failure: Error | undefined;
  #resolve!: () => void;
  #reject!: (error: Error) => void;

  constructor(text: string, feed: Feed, next?: Next) {
    this.#text = text;
    this.#feed = feed;
    this.#next = next;
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  submit(connection: PgConnection): void {
    const { stream } = connection as unknown as Connection;
    stream.cork();
    (connection as unknown as Connection).query(this.#text);
    const sink: CopySink = {
      write: (message, sent) => {
        if (this.#failure) sent(message);
        else stream.write(message, () => sent(message));
      },
      room: async () => {
        if (this.#failure) throw this.#failure;
        if (stream.writableLength < HIGH_WATER) return;
        stream.uncork();
        await new Promise<void>((resolve) => {
          const go = () => {
            stream.off('drain', go);
            stream.off('close', go);
            resolve();
          };
          stream.on('drain', go);
          stream.on('close', go);
        });
        if (this.#failure) throw this.#failure;
      },
    };
    const end = () => {
      if (!this.#failure) {
        stream.write(COPY_DONE);
        this.#next?.send(connection);
        this.#isNextSent = true;
      }
      stream.uncork();
    };
    const broken = (error: Error) => {
      // Half a COPY cannot be taken back, and Postgres must not take it for a whole one. So the connection is closed.
      stream.uncork();
      if (!this.#failure) stream.destroy(error);
    };
    try {
      const fed = this.#feed(sink);
      if (fed) fed.then(end, broken);
      else end();
    } catch (error) {
      broken(error as Error);
    }
  }

  /** Leaves the answers that follow to the next query, if there is one. */
  async #receiveNext(): Promise<void> {
    if (this.#isNextSent) await this.#next?.receive();
  }

  handleRowDescription(): void {}
  handleDataRow(message: { fields: (string | null)[] }): void {
    this.rows.push(message.fields);
  }
  handleCommandComplete(): void {}
  handleCopyInResponse(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
  handleError(error: Error): void {
    this.#failure = error;
    if (this.#settled) return;
    this.#settled = true;
    // The caller hears of the error last, so that its next statement does not come between.
    void this.#receiveNext().finally(() => this.#reject(error));
  }
  handleReadyForQuery(): void {
    if (this.#settled) return;
    this.#settled = true;
    void this.#receiveNext();
    this.#resolve();
  }
}

/**
 * Runs statements, one of which is a COPY that takes its data from `feed`. Returns the rows of the statements before
 * the COPY, as text. `next` is sent with them and has answers of its own.
 */
export async function copyIn(
  client: Transaction,
  text: string,
  feed: Feed,
  next?: FollowUp<unknown>,
): Promise<(string | null)[][]> {
  const copy = new CopyIn(
    text,
    feed,
    next && { send: (to) => next.send(to), receive: () => next.receive(client) },
  );
  client.query(copy);
  await copy.done;
  return copy.rows;
}
