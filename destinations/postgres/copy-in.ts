import type { Socket } from 'node:net';
import type { Submittable } from 'pg';
import type { Session } from './connection.ts';

/** So many bytes may wait in memory for the server. */
const HIGH_WATER = 2 * 1024 * 1024;
/** So many bytes may be under way to the server, here and in the buffers of the network. */
const MOST_UNDER_WAY = 4 * 1024 * 1024;
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

  /** Writes a chunk. Resolves with true if no more fits at the moment. Throws if the server has refused the COPY. */
  write(chunk: Buffer): boolean {
    if (this.failure) throw this.failure;
    const { stream } = this.#connection;
    const header = Buffer.allocUnsafe(5);
    header[0] = COPY_DATA;
    header.writeUInt32BE(chunk.length + 4, 1);
    stream.cork();
    stream.write(header);
    stream.write(chunk);
    stream.uncork();
    return stream.writableLength > HIGH_WATER && !stream.destroyed;
  }

  /** Resolves when there is room for more. Throws if the server has refused the COPY. */
  async room(): Promise<void> {
    const { stream } = this.#connection;
    await new Promise<void>((resolve) => {
      this.#wake = () => {
        stream.off('drain', this.#wake);
        resolve();
      };
      stream.once('drain', this.#wake);
    });
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
  session: Session,
  text: string,
  source: AsyncIterable<Buffer>,
  onBytes: (bytes: number) => void,
): Promise<{ rows: number; bytes: number }> {
  const copy = new CopyIn(text);
  session.client.query(copy);
  await session.whileWorking('begin to take the rows', () => copy.ready);
  let bytes = 0;
  const chunks = source[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await chunks.next().catch((error) => {
        throw new CallerError(error);
      });
      if (next.done) break;
      bytes += next.value.length;
      if (copy.write(next.value)) await session.whileWorking('take the rows', () => copy.room(), HIGH_WATER);
      onBytes(bytes);
    }
  } catch (error) {
    if (error instanceof CallerError)
      await session.whileWorking('give up', () => copy.giveUp()).catch(() => undefined);
    else await chunks.return?.();
    throw error;
  }
  await session.whileWorking('store the rows', () => copy.end(), Math.min(bytes, MOST_UNDER_WAY));
  return { rows: copy.rows, bytes };
}
