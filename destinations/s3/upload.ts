import { crc32 } from 'node:zlib';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  type HeadObjectCommandOutput,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import type { HiddenFile } from '../destination.ts';
import { DestinationError } from '../errors.ts';
import { encryptionOf } from './config.ts';
import {
  conditionOf,
  isConditionUnknown,
  isOutdated,
  place,
  type S3Connection,
  statusOf,
} from './connection.ts';

const MEBIBYTE = 1024 * 1024;
/** S3 takes no more parts than this, of at least 5 MiB each but for the last. */
export const MOST_PARTS = 10_000;
const SMALL_PART = 8 * MEBIBYTE;
const LARGE_PART = 64 * MEBIBYTE;
const SMALL_PARTS = 5_000;
/** As much of one file may be on its way at a time. */
export const IN_FLIGHT_BYTES = 32 * MEBIBYTE;

/**
 * The size of a part: the same for all of a file, as some servers insist, up to 39 GiB. Longer files go on in larger
 * parts, so that 10,000 of them hold 351 GiB.
 */
export function partSize(index: number): number {
  return index < SMALL_PARTS ? SMALL_PART : LARGE_PART;
}

/** CRC-32 as S3 takes it: big-endian, in base64. */
export function crc32Text(bytes: Buffer): string {
  const value = Buffer.allocUnsafe(4);
  value.writeUInt32BE(crc32(bytes));
  return value.toString('base64');
}

/** Memory of parts that were sent, for the next ones. */
export class PartBuffers {
  readonly #free: Buffer[] = [];

  take(size: number): Buffer {
    const at = this.#free.findIndex((one) => one.length === size);
    return at < 0 ? Buffer.allocUnsafeSlow(size) : (this.#free.splice(at, 1)[0] as Buffer);
  }

  give(buffer: Buffer): void {
    if (buffer.length === SMALL_PART && this.#free.length < IN_FLIGHT_BYTES / SMALL_PART + 1)
      this.#free.push(buffer);
  }

  clear(): void {
    this.#free.length = 0;
  }
}

/** An object as an attempt writes it: its labels tell it from those of others. */
interface LabelledObject {
  connection: S3Connection;
  key: string;
  labels: Record<string, string>;
}

async function head(
  { connection, key }: LabelledObject,
  signal?: AbortSignal,
): Promise<HeadObjectCommandOutput | undefined> {
  const target = { Bucket: connection.config.bucket_name, Key: key };
  try {
    return await connection.send((client) => client.send(new HeadObjectCommand(target)), {
      key,
      doing: 's3:GetObject',
      signal,
    });
  } catch (error) {
    if (error instanceof DestinationError && error.code === 'missing') return undefined;
    throw error;
  }
}

/** Which version of the object is there; undefined: none. */
const versionThere = async (object: LabelledObject, signal?: AbortSignal) =>
  (await head(object, signal))?.ETag;

/** Whether what is there is what this very attempt wrote. */
const isOwn = async (object: LabelledObject) =>
  (await head(object))?.Metadata?.['sluice-attempt'] === object.labels['sluice-attempt'];

const overtaken = ({ connection, key }: LabelledObject, cause: unknown) =>
  new DestinationError('overtaken', `${place(connection.config, key)}: somebody else was faster`, { cause });

/**
 * Writes an object in one request, in the place of what was seen there. A request that is under way for long must not
 * arrive on top of what another attempt has written since.
 */
async function putWhole(object: LabelledObject, body: Buffer, seen: string | undefined): Promise<void> {
  const { connection, key, labels } = object;
  const command = {
    ...{ Bucket: connection.config.bucket_name, Key: key, Body: body, Metadata: labels },
    ...encryptionOf(connection.config),
    ChecksumCRC32: crc32Text(body),
  };
  await connection.send(
    async (client) => {
      try {
        await client.send(new PutObjectCommand({ ...command, ...conditionOf(seen) }));
      } catch (error) {
        if (isConditionUnknown(error)) await client.send(new PutObjectCommand(command));
        else if (!isOutdated(error, seen)) throw error;
        // Perhaps it was written, and only the answer got lost.
        else if (!(await isOwn(object))) throw overtaken(object, error);
      }
    },
    { key, doing: 's3:PutObject' },
  );
}

export async function abortUpload(connection: S3Connection, key: string, UploadId: string): Promise<void> {
  const command = { Bucket: connection.config.bucket_name, Key: key, UploadId };
  await connection.send(
    async (client) => {
      try {
        await client.send(new AbortMultipartUploadCommand(command));
      } catch (error) {
        if ((error as Error).name !== 'NoSuchUpload') throw error;
      }
    },
    { key, doing: 's3:AbortMultipartUpload', attempts: 3 },
  );
}

interface Part {
  PartNumber: number;
  ETag: string | undefined;
  ChecksumCRC32: string;
}

interface S3UploadOptions {
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
export class S3Upload implements HiddenFile {
  readonly #options: S3UploadOptions;
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

  constructor(options: S3UploadOptions) {
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
