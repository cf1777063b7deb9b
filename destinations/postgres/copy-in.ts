import type { Socket } from 'node:net';
import type pg from 'pg';
import type { Submittable } from 'pg';

/** So many bytes may wait in memory for the server. */
const HIGH_WATER = 2 * 1024 * 1024;
const COPY_DATA = 0x64;
const COPY_DONE = Buffer.of(0x63, 0, 0, 0, 4);

interface Connection {
  stream: Socket;
  query(text: string): void;
  sendCopyFail(message: string): void;
}

/** The source of the rows or the caller's fence failed. This is not an error of the destination. */
export class CallerError extends Error {
  override name = 'CallerError';
  readonly original: unknown;
  constructor(original: unknown) {
    super('the rows could not be read');
    this.original = original;
  }
}

/** A COPY FROM STDIN. The server may refuse it at any time; then no further rows are sent. */
class CopyIn implements Submittable {
  readonly ready: Promise<void>;
  readonly done: Promise<void>;
  rows = 0;
  failure: Error | undefined;
  #connection!: Connection;
  readonly #text: string;
  readonly #ready = Promise.withResolvers<void>();
  readonly #done = Promise.withResolvers<void>();
  #wake = () => {};

  constructor(text: string) {
    this.#text = text;
    this.ready = this.#ready.promise;
    this.done = this.#done.promise;
    // They are awaited one after the other. Until then, a failure must not count as unhandled.
    this.ready.catch(() => undefined);
    this.done.catch(() => undefined);
  }

  submit(connection: unknown): void {
    this.#connection = connection as Connection;
    this.#connection.query(this.#text);
  }

  /** Writes a chunk and resolves when there is room for more. Throws if the server has refused the COPY. */
  async write(chunk: Buffer): Promise<void> {
    if (this.failure) throw this.failure;
    const { stream } = this.#connection;
    const header = Buffer.allocUnsafe(5);
    header[0] = COPY_DATA;
    header.writeUInt32BE(chunk.length + 4, 1);
    stream.cork();
    stream.write(header);
    stream.write(chunk);
    stream.uncork();
    if (stream.writableLength > HIGH_WATER && !stream.destroyed) {
      await new Promise<void>((resolve) => {
        this.#wake = () => {
          stream.off('drain', this.#wake);
          resolve();
        };
        stream.once('drain', this.#wake);
      });
    }
    if (this.failure) throw this.failure;
  }

  async end(): Promise<void> {
    if (!this.failure) this.#connection.stream.write(COPY_DONE);
    await this.done;
  }

  async giveUp(): Promise<void> {
    if (!this.failure) this.#connection.sendCopyFail('the rows could not be read');
    await this.done.catch(() => undefined);
  }

  handleCopyInResponse(): void {
    this.#ready.resolve();
  }
  handleCommandComplete(message: { text?: string }): void {
    this.rows = Number(/^COPY (\d+)/.exec(message.text ?? '')?.[1] ?? 0);
  }
  handleReadyForQuery(): void {
    this.#done.resolve();
  }
  handleError(error: Error): void {
    this.failure = error;
    this.#ready.reject(error);
    this.#done.reject(error);
    this.#wake();
  }
  handleRowDescription(): void {}
  handleDataRow(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
}

/** Sends a binary COPY chunk by chunk. Returns how many rows and bytes arrived. */
export async function sendCopy(
  client: pg.Client,
  text: string,
  source: AsyncIterable<Buffer>,
  onBytes: (bytes: number) => void,
): Promise<{ rows: number; bytes: number }> {
  const copy = new CopyIn(text);
  client.query(copy);
  await copy.ready;
  let bytes = 0;
  const chunks = source[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await chunks.next().catch((error) => {
        throw new CallerError(error);
      });
      if (next.done) break;
      bytes += next.value.length;
      await copy.write(next.value);
      onBytes(bytes);
    }
  } catch (error) {
    if (error instanceof CallerError) await copy.giveUp();
    else await chunks.return?.();
    throw error;
  }
  await copy.end();
  return { rows: copy.rows, bytes };
}
