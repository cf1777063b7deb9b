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
import { joiningLimit, requestLimit } from '../limits.ts';
import { type PartBuffers, Parts } from '../parts.ts';
import { encryptionOf } from './config.ts';
import {
  conditionOf,
  isConditionUnknown,
  isOutdated,
  place,
  type S3Connection,
  statusOf,
} from './connection.ts';

/** The most parts that S3 takes. All but the last must have at least 5 MiB. */
export const MOST_PARTS = 10_000;

/** CRC-32 as S3 expects it: big-endian, in base64. */
export function crc32Text(bytes: Buffer): string {
  const value = Buffer.allocUnsafe(4);
  value.writeUInt32BE(crc32(bytes));
  return value.toString('base64');
}

/** The label that tells an object from every other one. */
export const MARK = 'sluice-attempt';

/** An object that an attempt writes. Its labels distinguish it from the objects of other attempts. */
interface LabelledObject {
  connection: S3Connection;
  key: string;
  labels: Record<string, string>;
}

/** The properties of the object that is there. Undefined if there is none. */
export async function head(
  { connection, key }: Pick<LabelledObject, 'connection' | 'key'>,
  signal?: AbortSignal,
): Promise<HeadObjectCommandOutput | undefined> {
  const target = { Bucket: connection.config.bucket_name, Key: key };
  try {
    return await connection.send((client) => client.send(new HeadObjectCommand(target)), {
      key,
      doing: 's3:GetObject',
      signal,
      cut: signal,
    });
  } catch (error) {
    if (error instanceof DestinationError && error.code === 'missing') return undefined;
    throw error;
  }
}

/** The version of the object that is there. Undefined if there is none. */
const versionThere = async (object: LabelledObject, signal?: AbortSignal) =>
  (await head(object, signal))?.ETag;

/** Whether this attempt wrote the object that is there. */
const isOwn = async (object: LabelledObject) =>
  (await head(object))?.Metadata?.[MARK] === object.labels[MARK];

const overtaken = ({ connection, key }: LabelledObject, cause: unknown) =>
  new DestinationError('overtaken', `${place(connection.config, key)}: somebody else was faster`, { cause });

/**
 * Writes an object in one request, on condition that the version there is still `seen`. So a request that is delayed
 * does not overwrite what another attempt has written since.
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
        // Perhaps this attempt wrote the object, and only the answer got lost.
        else if (!(await isOwn(object))) throw overtaken(object, error);
      }
    },
    {
      ...{ key, doing: 's3:PutObject', rowBytes: body.length },
      limit: requestLimit(connection.limits, body.length),
    },
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
  /** Metadata of the object. Only this attempt knows its mark. */
  labels: Record<string, string>;
  signal?: AbortSignal | undefined;
  /** Whether a file smaller than a part may stay in memory, to be sent in one request. */
  mayWait: boolean;
  /** Called when an upload may have begun whose id is unknown. */
  onDoubt(): void;
}

/**
 * Uploads one object in parts. A part is sent while the next one fills. S3 joins the parts only at `publish`; until then
 * nobody sees the object, and an earlier one stays.
 */
export class S3Upload implements HiddenFile {
  readonly #options: S3UploadOptions;
  readonly #file: Parts;
  readonly #parts: Part[] = [];
  /** How many bytes the server has taken. */
  #bytes = 0;
  #uploadId: Promise<string> | undefined;
  #whole: Buffer | undefined;
  /** The version that was there before. It is read before the fence is asked. */
  #seen: string | undefined;

  constructor(options: S3UploadOptions) {
    this.#options = options;
    const { buffers, signal, connection, key } = options;
    this.#file = new Parts({
      ...{ buffers, signal, most: MOST_PARTS },
      tooLarge: () =>
        new DestinationError(
          'rejected',
          `${place(connection.config, key)}: the file is too large for S3; set max_file_size_mb`,
        ),
      send: (number, bytes, control) => this.#sendPart(number, bytes, control),
    });
  }

  get mark(): string {
    return this.#options.labels[MARK] as string;
  }

  get #target() {
    return { Bucket: this.#options.connection.config.bucket_name, Key: this.#options.key };
  }

  write(chunk: Buffer): void | Promise<void> {
    return this.#file.write(chunk);
  }

  async #sendPart(
    number: number,
    bytes: Buffer,
    { signal, cut }: { signal: AbortSignal; cut: AbortSignal },
  ): Promise<void> {
    this.#uploadId ??= this.#create();
    const UploadId = await this.#uploadId;
    signal.throwIfAborted();
    const ChecksumCRC32 = crc32Text(bytes);
    const command = { ...this.#target, UploadId, PartNumber: number, Body: bytes, ChecksumCRC32 };
    const { connection, key } = this.#options;
    const { ETag } = await connection.send((client) => client.send(new UploadPartCommand(command)), {
      ...{ key, doing: 's3:PutObject', signal, cut },
      ...{ rowBytes: bytes.length, limit: requestLimit(connection.limits, bytes.length) },
    });
    this.#bytes += bytes.length;
    this.#parts.push({ PartNumber: number, ETag, ChecksumCRC32 });
  }

  /** Begins the upload. A signal prevents only retries: an upload whose id was never received cannot be aborted. */
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
        { key, doing: 's3:PutObject', signal: this.#file.signal, onRetry: onDoubt },
      );
      return UploadId as string;
    } catch (error) {
      onDoubt();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#whole = this.#options.mayWait ? this.#file.takeWhole() : undefined;
    if (!this.#whole) await this.#file.finish();
    this.#seen = await versionThere(this.#options, this.#file.signal);
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
    try {
      await connection.send(
        async (client) => {
          try {
            await client.send(new CompleteMultipartUploadCommand({ ...command, ...conditionOf(this.#seen) }));
          } catch (error) {
            if (isConditionUnknown(error)) {
              await client.send(new CompleteMultipartUploadCommand(command));
              return;
            }
            // Perhaps the upload was completed, and only the answer got lost.
            const isDone = (error as Error).name === 'NoSuchUpload' || statusOf(error) === 404;
            if (!isDone && !isOutdated(error, this.#seen)) throw error;
            if (!(await isOwn(this.#options))) throw overtaken(this.#options, error);
          }
        },
        {
          ...{ key, doing: 's3:PutObject', mayBeSilent: true },
          limit: joiningLimit(connection.limits, this.#bytes),
        },
      );
    } catch (error) {
      // The same, if the server fell silent over it.
      const isSilent = error instanceof DestinationError && error.code === 'timed-out';
      if (!isSilent || !(await isOwn(this.#options).catch(() => false))) throw error;
    }
    this.#uploadId = undefined;
  }

  async abort(): Promise<void> {
    const { connection, key, onDoubt } = this.#options;
    await this.#file.abort(connection.graceMilliseconds, onDoubt);
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
