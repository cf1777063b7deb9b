import { createHash, randomBytes } from 'node:crypto';
import type { BlobGetPropertiesResponse } from '@azure/storage-blob';
import type { HiddenFile } from '../destination.ts';
import { DestinationError } from '../errors.ts';
import { joiningLimit, requestLimit } from '../limits.ts';
import { type PartBuffers, Parts } from '../parts.ts';
import { type AzureConnection, codeOf, conditionOf, isAbsent, isOutdated, place } from './connection.ts';

/** The most blocks that a blob takes. */
const MOST_BLOCKS = 50_000;

/** The metadata that tells a blob from every other one. Names of metadata have no hyphens. */
export const MARK = 'sluice_attempt';

/** The checksum by which Azure finds damaged bytes. */
export const md5Of = (bytes: Buffer): Uint8Array => createHash('md5').update(bytes).digest();

/** The properties of the blob that is there. Undefined if there is none. */
export function propertiesOf(
  connection: AzureConnection,
  key: string,
  signal?: AbortSignal,
): Promise<BlobGetPropertiesResponse | undefined> {
  return connection.send(
    async (container, abortSignal) => {
      try {
        return await container.getBlobClient(key).getProperties({ abortSignal });
      } catch (error) {
        if (isAbsent(error)) return undefined;
        throw error;
      }
    },
    { key, doing: 'Get Blob Properties', signal, cut: signal },
  );
}

interface AzureUploadOptions {
  connection: AzureConnection;
  buffers: PartBuffers;
  key: string;
  /** Metadata of the blob. Only this attempt knows its mark. */
  metadata: Record<string, string>;
  signal?: AbortSignal | undefined;
  /** Whether a file smaller than a block may stay in memory, to be sent in one request. */
  mayWait: boolean;
}

/**
 * Uploads one blob in blocks. Azure joins them only at `publish`; until then nobody sees the blob, and an earlier one
 * stays. Azure removes blocks that nobody joins after a week, or when somebody else writes the blob.
 */
export class AzureUpload implements HiddenFile {
  readonly #options: AzureUploadOptions;
  readonly #file: Parts;
  /** In the ids of the blocks, so that those of another attempt are other blocks. */
  readonly #attempt = randomBytes(12).toString('hex');
  #blocks = 0;
  #bytes = 0;
  #whole: Buffer | undefined;
  /** The version that was there before. It is read before the fence is asked. */
  #seen: string | undefined;

  constructor(options: AzureUploadOptions) {
    this.#options = options;
    const { buffers, signal, connection, key } = options;
    this.#file = new Parts({
      ...{ buffers, signal, most: MOST_BLOCKS },
      tooLarge: () =>
        new DestinationError(
          'rejected',
          `${place(connection.config, key)}: the file is too large for Azure; set max_file_size_mb`,
        ),
      send: (number, bytes, control) => this.#stage(number, bytes, control),
    });
  }

  get mark(): string {
    return this.#options.metadata[MARK] as string;
  }

  /** All ids of a blob must have the same length. */
  #id(number: number): string {
    return Buffer.from(`${this.#attempt}-${String(number).padStart(6, '0')}`).toString('base64');
  }

  write(chunk: Buffer): void | Promise<void> {
    return this.#file.write(chunk);
  }

  async #stage(
    number: number,
    bytes: Buffer,
    { signal, cut }: { signal: AbortSignal; cut: AbortSignal },
  ): Promise<void> {
    this.#blocks = Math.max(this.#blocks, number);
    // Azure takes no empty block. An empty file is an empty list of them.
    if (bytes.length === 0) return;
    const { connection, key } = this.#options;
    signal.throwIfAborted();
    const transactionalContentMD5 = md5Of(bytes);
    await connection.send(
      (container, abortSignal) =>
        container
          .getBlockBlobClient(key)
          .stageBlock(this.#id(number), bytes, bytes.length, { abortSignal, transactionalContentMD5 }),
      {
        ...{ key, doing: 'Put Block', signal, cut },
        ...{ rowBytes: bytes.length, limit: requestLimit(connection.limits, bytes.length) },
      },
    );
    this.#bytes += bytes.length;
  }

  async close(): Promise<void> {
    const { connection, key, mayWait } = this.#options;
    this.#whole = mayWait ? this.#file.takeWhole() : undefined;
    if (!this.#whole) await this.#file.finish();
    this.#seen = (await propertiesOf(connection, key, this.#file.signal))?.etag;
  }

  /** On condition that the version there is still the one that was seen: a late request overwrites nothing newer. */
  async publish(): Promise<void> {
    const { connection, key, metadata } = this.#options;
    const whole = this.#whole;
    const conditions = conditionOf(this.#seen);
    const ids =
      this.#bytes === 0 ? [] : Array.from({ length: this.#blocks }, (_, index) => this.#id(index + 1));
    try {
      await connection.send(
        async (container, abortSignal) => {
          const blob = container.getBlockBlobClient(key);
          try {
            if (whole) {
              const transactionalContentMD5 = md5Of(whole);
              const options = { abortSignal, conditions, metadata, transactionalContentMD5 };
              await blob.upload(whole, whole.length, options);
            } else await blob.commitBlockList(ids, { abortSignal, conditions, metadata });
          } catch (error) {
            // Another attempt wrote the blob, which removes the blocks of this one. Or this one did: only its answer got lost.
            if (!isOutdated(error, this.#seen) && codeOf(error) !== 'InvalidBlockList') throw error;
            if (await this.#isOwn()) return;
            const text = `${place(connection.config, key)}: somebody else was faster`;
            throw new DestinationError('overtaken', text, { cause: error });
          }
        },
        {
          ...{ key, doing: whole ? 'Put Blob' : 'Put Block List', mayBeSilent: !whole },
          rowBytes: whole?.length ?? 0,
          limit: whole
            ? requestLimit(connection.limits, whole.length)
            : joiningLimit(connection.limits, this.#bytes),
        },
      );
    } catch (error) {
      // The same, if the server fell silent over it.
      const isSilent = error instanceof DestinationError && error.code === 'timed-out';
      if (!isSilent || !(await this.#isOwn().catch(() => false))) throw error;
    }
    this.#whole = undefined;
  }

  /** Whether this attempt wrote the blob that is there. */
  async #isOwn(): Promise<boolean> {
    const { connection, key } = this.#options;
    return (await propertiesOf(connection, key))?.metadata?.[MARK] === this.mark;
  }

  async abort(): Promise<void> {
    await this.#file.abort(this.#options.connection.graceMilliseconds);
    this.#whole = undefined;
  }
}
