import type { Socket } from 'node:net';
import type { Submittable } from 'pg';
import { abandonConnection } from './abandon-connection.ts';
import { CopyMessages, LONGEST_ROW } from './copy-messages.ts';
import type { Pool, Transaction } from './pool.ts';
import { quoted } from './sql-literal.ts';

/** How many bytes of a COPY may wait in memory for the reader. */
const HIGH_WATER = 1024 * 1024;

export interface CopyOutOptions {
  /** Settings of Postgres for this transaction, by name. */
  settings?: Readonly<Record<string, string>>;
  /** Postgres ends the statement after this time, in which waiting for the reader counts. 0 means never. */
  timeoutMs?: number;
  /** The longest row in bytes. A longer one fails before it is read. */
  longestRow?: number;
  signal?: AbortSignal;
}

/** The bytes of a COPY, in chunks of any size. They can be read once. */
export interface CopyOut extends AsyncIterable<Buffer> {
  /** The number of rows as Postgres reports it. It is known when everything is read. */
  readonly rows: number | undefined;
}

/**
 * A row is too long to be held in memory. A query can make a row of any length, and its reader holds one row at a time.
 */
export class RowTooLongError extends Error {
  override readonly name = 'RowTooLongError';
  /** The SQLSTATE for a program that exceeds a limit, as if Postgres had refused the row. */
  readonly code = '54000';
  readonly bytes: number;
  readonly longest: number;

  constructor(bytes: number, longest: number) {
    super(`a row of ${bytes} bytes is longer than ${longest} bytes`);
    this.bytes = bytes;
    this.longest = longest;
  }
}

interface Connection {
  stream: Socket;
  query(text: string): void;
}

type Listener = (chunk: Buffer) => void;

/**
 * A COPY TO STDOUT whose bytes come from the socket directly, because the driver would create an object for each row.
 * All other messages go on to the driver, which reports errors and the end.
 */
class CopyQuery implements Submittable {
  rows: number | undefined;
  readonly #text: string;
  readonly #longestRow: number;
  #stream: Socket | undefined;
  readonly #chunks: Buffer[] = [];
  #waiting = 0;
  #ended = false;
  #failure: Error | undefined;
  #wake: (() => void) | undefined;

  constructor(text: string, longestRow: number) {
    this.#text = text;
    this.#longestRow = longestRow;
  }

  submit(connection: unknown): void {
    const { stream } = connection as Connection;
    this.#stream = stream;
    const driver = stream.listeners('data') as Listener[];
    const messages = new CopyMessages((bytes) => {
      for (const listener of driver) listener.call(stream, bytes);
    }, this.#longestRow);
    const take = (chunk: Buffer) => {
      const data = messages.take(chunk);
      if (messages.tooLong > 0) this.handleError(new RowTooLongError(messages.tooLong, this.#longestRow));
      if (data.length > 0) this.#keep(data);
      if (!messages.ready) return;
      stream.off('data', take);
      for (const listener of driver) stream.on('data', listener);
      stream.resume();
    };
    for (const listener of driver) stream.off('data', listener);
    stream.on('data', take);
    (connection as Connection).query(this.#text);
  }

  #keep(data: Buffer): void {
    this.#chunks.push(data);
    this.#waiting += data.length;
    if (this.#waiting >= HIGH_WATER) this.#stream?.pause();
    this.#stir();
  }

  #stir(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  /** Returns the next chunk, or undefined at the end. Throws a failure at once, even if chunks are left to read. */
  async next(): Promise<Buffer | undefined> {
    for (;;) {
      if (this.#failure) throw this.#failure;
      const chunk = this.#chunks.shift();
      if (chunk) {
        this.#waiting -= chunk.length;
        if (this.#waiting < HIGH_WATER && this.#stream?.isPaused()) this.#stream.resume();
        return chunk;
      }
      if (this.#ended) {
        if (this.rows === undefined)
          throw new Error('Postgres ended a COPY without saying how many rows it had');
        return undefined;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  handleRowDescription(): void {}
  handleDataRow(): void {}
  handleCopyInResponse(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
  handleCommandComplete(message: { text: string }): void {
    const match = /^COPY (\d+)$/.exec(message.text);
    if (match) this.rows = Number(match[1]);
  }
  handleError(error: Error): void {
    this.#failure ??= error;
    this.#stir();
  }
  handleReadyForQuery(): void {
    this.#ended = true;
    this.#stir();
  }
}

/**
 * Runs `copy (…) to stdout` in a read-only transaction of its own, so with one snapshot. It starts with the iteration.
 * The iteration throws whatever goes wrong, so an iteration that ends has returned everything. Ending it early, or
 * aborting the signal, closes the connection, and Postgres stops.
 */
export function copyOut(pool: Pool, text: string, options: CopyOutOptions = {}): CopyOut {
  const { settings = {}, timeoutMs = 0, longestRow = LONGEST_ROW, signal } = options;
  const set = Object.entries({
    statement_timeout: `${timeoutMs}ms`,
    // Postgres notices a closed connection even while it is still looking for rows.
    client_connection_check_interval: '5s',
    ...settings,
  });
  const local = set.map(([name, value]) => `set local ${name} = ${quoted(value)}; `);
  const query = new CopyQuery(`begin read only; ${local.join('')}${text}; commit`, longestRow);
  return {
    get rows() {
      return query.rows;
    },
    [Symbol.asyncIterator]: () => read(pool, query, signal),
  };
}

async function* read(pool: Pool, query: CopyQuery, signal: AbortSignal | undefined): AsyncGenerator<Buffer> {
  signal?.throwIfAborted();
  const client: Transaction = await pool.connect();
  let whole = false;
  // Without a listener, a lost connection would end the process. The query gets the same error.
  const lost = () => undefined;
  const abort = () => abandonConnection(client, signal?.reason as Error);
  client.on('error', lost);
  try {
    signal?.throwIfAborted();
    signal?.addEventListener('abort', abort);
    client.query(query);
    for (let chunk = await query.next(); chunk; chunk = await query.next()) {
      yield chunk;
      signal?.throwIfAborted();
    }
    whole = true;
  } finally {
    signal?.removeEventListener('abort', abort);
    if (!whole) abandonConnection(client, new Error('The COPY was given up'));
    client.off('error', lost);
    client.release(!whole);
  }
}
