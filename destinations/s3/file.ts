import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { DestinationError } from '../errors.ts';
import type { HiddenFile } from '../file-store.ts';
import type { S3Connection } from './client.ts';
import { encryptionOf } from './config.ts';
import { place, statusOf } from './errors.ts';
import { isOwn, overtaken, putWhole, versionThere } from './objects.ts';
import { crc32Text, IN_FLIGHT_BYTES, MOST_PARTS, type PartBuffers, partSize } from './parts.ts';
import { abortUpload } from './uploads.ts';

interface Part {
  PartNumber: number;
  ETag: string | undefined;
  ChecksumCRC32: string;
}

export interface S3FileOptions {
  connection: S3Connection;
  buffers: PartBuffers;
  key: string;
  /** Kept with the object; `sluice-attempt` is known to this attempt alone. */
  labels: Record<string, string>;
  signal?: AbortSignal | undefined;
  /** Whether a file that is smaller than a part may wait in memory, to be sent in one request. */
  mayWait: boolean;
  /** An upload may have begun of which the id is not known. */
  onDoubt(): void;
}

/**
 * One object, uploaded in parts that go out while the next one fills. Not before `publish` does S3 put them together:
 * until then there is no object, or the one that was there before.
 */
export class S3File implements HiddenFile {
  readonly #options: S3FileOptions;
  /** No further request is begun. */
  readonly #quit = new AbortController();
  /** Those that are on their way are cut. */
  readonly #cut = new AbortController();
  readonly #signal: AbortSignal;
  readonly #parts: Part[] = [];
  readonly #sending = new Map<Promise<void>, number>();
  #buffer: Buffer | undefined;
  #used = 0;
  #next = 0;
  #uploadId: Promise<string> | undefined;
  #failure: Error | undefined;
  #whole: Buffer | undefined;
  /** What was there before it: looked at before the fence is asked. */
  #seen: string | undefined;

  constructor(options: S3FileOptions) {
    this.#options = options;
    this.#signal = options.signal ? AbortSignal.any([options.signal, this.#quit.signal]) : this.#quit.signal;
  }

  get #target() {
    return { Bucket: this.#options.connection.config.bucket_name, Key: this.#options.key };
  }

  /** Copies what is written, so that the caller may use its memory again; waits only while enough is on its way. */
  write(chunk: Buffer): void | Promise<void> {
    if (this.#failure) throw this.#failure;
    const rest = this.#fill(chunk, 0);
    return rest === chunk.length ? undefined : this.#writeRest(chunk, rest);
  }

  async #writeRest(chunk: Buffer, from: number): Promise<void> {
    for (let at = from; at < chunk.length; at = this.#fill(chunk, at)) {
      await this.#room();
      this.#send();
    }
  }

  #fill(chunk: Buffer, from: number): number {
    if (from === chunk.length) return from;
    this.#buffer ??= this.#options.buffers.take(partSize(this.#next));
    const copied = chunk.copy(this.#buffer, this.#used, from);
    this.#used += copied;
    return from + copied;
  }

  async #room(): Promise<void> {
    const sent = () => [...this.#sending.values()].reduce((sum, bytes) => sum + bytes, 0);
    const { promise: quit, resolve } = Promise.withResolvers<void>();
    const onQuit = () => resolve();
    this.#signal.addEventListener('abort', onQuit);
    try {
      while (this.#sending.size > 0 && sent() + this.#used > IN_FLIGHT_BYTES && !this.#signal.aborted)
        await Promise.race([...this.#sending.keys(), quit]);
    } finally {
      this.#signal.removeEventListener('abort', onQuit);
    }
    if (this.#failure) throw this.#failure;
    this.#signal.throwIfAborted();
  }

  /** Begins to send the part that is full. */
  #send(): void {
    const { key, connection, buffers } = this.#options;
    const buffer = this.#buffer ?? Buffer.alloc(0);
    const bytes = buffer.subarray(0, this.#used);
    const number = this.#next + 1;
    if (number > MOST_PARTS) {
      this.#failure = new DestinationError(
        'rejected',
        `${place(connection.config, key)}: the file is too large for S3; set max_file_size_mb`,
      );
      throw this.#failure;
    }
    this.#next = number;
    this.#buffer = undefined;
    this.#used = 0;
    const sending = this.#sendPart(number, bytes)
      .catch((error) => {
        this.#failure ??= error as Error;
        this.#quit.abort(error);
      })
      .finally(() => {
        this.#sending.delete(sending);
        buffers.give(buffer);
      });
    this.#sending.set(sending, bytes.length);
  }

  async #sendPart(number: number, bytes: Buffer): Promise<void> {
    this.#uploadId ??= this.#create();
    const UploadId = await this.#uploadId;
    this.#signal.throwIfAborted();
    const ChecksumCRC32 = crc32Text(bytes);
    const command = { ...this.#target, UploadId, PartNumber: number, Body: bytes, ChecksumCRC32 };
    const { ETag } = await this.#options.connection.send(
      (client) => client.send(new UploadPartCommand(command), { abortSignal: this.#cut.signal }),
      { key: this.#options.key, doing: 's3:PutObject', signal: this.#signal },
    );
    this.#parts.push({ PartNumber: number, ETag, ChecksumCRC32 });
  }

  /** A request is not interrupted, only not repeated: an upload whose id nobody knows could not be aborted. */
  async #create(): Promise<string> {
    const { connection, key, labels, onDoubt } = this.#options;
    const command = {
      ...this.#target,
      ...encryptionOf(connection.config),
      ChecksumAlgorithm: 'CRC32' as const,
      Metadata: labels,
    };
    try {
      const { UploadId } = await connection.send(
        (client) => client.send(new CreateMultipartUploadCommand(command)),
        { key, doing: 's3:PutObject', signal: this.#signal, onRetry: onDoubt },
      );
      return UploadId as string;
    } catch (error) {
      onDoubt();
      throw error;
    }
  }

  async close(): Promise<void> {
    if (this.#failure) throw this.#failure;
    if (this.#next === 0 && this.#options.mayWait) {
      this.#whole = Buffer.from(this.#buffer?.subarray(0, this.#used) ?? []);
      if (this.#buffer) this.#options.buffers.give(this.#buffer);
      this.#buffer = undefined;
      this.#seen = await versionThere(this.#options, this.#signal);
      return;
    }
    if (this.#used > 0 || this.#next === 0) {
      await this.#room();
      this.#send();
    }
    await Promise.all(this.#sending.keys());
    if (this.#failure) throw this.#failure;
  }

  async publish(): Promise<void> {
    const { connection, key } = this.#options;
    if (this.#whole) {
      await putWhole(this.#options, this.#whole, this.#seen);
      this.#whole = undefined;
      return;
    }
    const UploadId = await this.#uploadId;
    const Parts = this.#parts.sort((one, other) => one.PartNumber - other.PartNumber);
    const command = { ...this.#target, UploadId, MultipartUpload: { Parts } };
    await connection.send(
      async (client) => {
        try {
          await client.send(new CompleteMultipartUploadCommand(command));
        } catch (error) {
          // Perhaps it was completed, and only the answer got lost.
          if ((error as Error).name !== 'NoSuchUpload' && statusOf(error) !== 404) throw error;
          if (!(await isOwn(this.#options))) throw overtaken(this.#options, error);
        }
      },
      { key, doing: 's3:PutObject' },
    );
    this.#uploadId = undefined;
  }

  async abort(): Promise<void> {
    const { connection, key, onDoubt } = this.#options;
    const reason = new Error('the file was given up');
    this.#quit.abort(reason);
    this.#failure ??= reason;
    // A part that the server is still taking when the upload is aborted may be stored for ever: they may arrive first.
    const timer = setTimeout(() => {
      onDoubt();
      this.#cut.abort(reason);
    }, connection.graceMilliseconds);
    await Promise.all(this.#sending.keys());
    clearTimeout(timer);
    this.#buffer = undefined;
    this.#whole = undefined;
    const UploadId = await this.#uploadId?.catch(() => undefined);
    if (UploadId === undefined) return;
    try {
      await abortUpload(connection, key, UploadId);
      this.#uploadId = undefined;
    } catch (error) {
      onDoubt();
      throw error;
    }
  }
}
