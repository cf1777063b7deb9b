import { randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import { digestOf, smallContent } from '../answers.ts';
import type { FileStore, StoreWork, Surroundings } from '../destination.ts';
import { DestinationError } from '../errors.ts';
import { requestLimit } from '../limits.ts';
import type { PlaceKeys } from '../object-keys.ts';
import { PartBuffers } from '../parts.ts';
import { encryptionOf, type S3Config } from './config.ts';
import {
  conditionOf,
  connectS3,
  isConditionUnknown,
  isOutdated,
  place,
  type S3Connection,
} from './connection.ts';
import { abortUpload, crc32Text, head, MARK, S3Upload } from './upload.ts';

export function s3Store(config: S3Config, surroundings: Surroundings, work?: StoreWork): FileStore {
  const connection = connectS3(config, surroundings, work);
  const { limits } = connection;
  const buffers = new PartBuffers();
  const Bucket = config.bucket_name;
  let opened = 0;
  let swept: PlaceKeys | undefined;
  let inDoubt = false;

  return {
    describe: (key) => place(config, key),

    async sweep(keys, signal) {
      swept = keys;
      await abortUploads(connection, keys, signal);
    },

    async open(key, labels, signal) {
      opened += 1;
      return new S3Upload({
        connection,
        buffers,
        key,
        labels: { ...labels, [MARK]: randomUUID() },
        signal,
        mayWait: opened === 1,
        onDoubt: () => {
          inDoubt = true;
        },
      });
    },

    async get(key, signal) {
      return connection.send(
        async (client, extend) => {
          const answer = await client.send(new GetObjectCommand({ Bucket, Key: key })).catch(absent);
          if (!answer) return undefined;
          const { ContentLength: length = 0, ETag: version = '' } = answer;
          const body = answer.Body as Readable;
          const bytes = await smallContent(body, length, (most) => extend(requestLimit(limits, most)));
          return { bytes, version };
        },
        { key, doing: 's3:GetObject and s3:ListBucket', signal, cut: signal },
      );
    },

    async put(key, bytes, seen) {
      const command = {
        Bucket,
        Key: key,
        Body: bytes,
        ContentType: 'application/json',
        ChecksumCRC32: crc32Text(bytes),
        ...encryptionOf(config),
      };
      const condition = conditionOf(seen?.version);
      return connection.send(
        async (client) => {
          try {
            await client.send(new PutObjectCommand({ ...command, ...condition }));
            return true;
          } catch (error) {
            if (isOutdated(error, seen?.version)) return false;
            if (!isConditionUnknown(error)) throw error;
            await client.send(new PutObjectCommand(command));
            return true;
          }
        },
        { key, doing: 's3:PutObject', limit: requestLimit(limits, bytes.length) },
      );
    },

    async remove(key) {
      await connection.send((client) => client.send(new DeleteObjectCommand({ Bucket, Key: key })), {
        key,
        doing: 's3:DeleteObject',
      });
    },

    async markOf(key, signal) {
      const found = await head({ connection, key }, signal);
      return found && (found.Metadata?.[MARK] ?? null);
    },

    async removeMarked(key, mark, signal) {
      const found = await head({ connection, key }, signal);
      if (found?.Metadata?.[MARK] !== mark) return false;
      const target = { Bucket, Key: key };
      return connection.send(
        async (client) => {
          try {
            await client.send(
              new DeleteObjectCommand({ ...target, ...(found.ETag ? { IfMatch: found.ETag } : {}) }),
            );
          } catch (error) {
            if (isOutdated(error, found.ETag)) return false;
            if (!isConditionUnknown(error)) throw error;
            await client.send(new DeleteObjectCommand(target));
          }
          return true;
        },
        { key, doing: 's3:DeleteObject', signal },
      );
    },

    async digest(key, signal) {
      return connection.send(
        async (client, extend) => {
          const answer = await client.send(new GetObjectCommand({ Bucket, Key: key })).catch(absent);
          if (!answer) return undefined;
          extend(requestLimit(limits, answer.ContentLength ?? 0));
          return digestOf(answer.Body as Readable, answer.ContentLength, place(config, key), signal);
        },
        { key, doing: 's3:GetObject', signal, cut: signal },
      );
    },

    async close() {
      try {
        if (inDoubt && swept) {
          const late = AbortSignal.timeout(CLOSING_MILLISECONDS);
          await abortUploads(connection, swept, late).catch(() => undefined);
        }
      } finally {
        buffers.clear();
        connection.destroy();
      }
    },
  };
}

function absent(error: unknown): undefined {
  if ((error as Error).name === 'NoSuchKey') return undefined;
  throw error;
}

interface Upload {
  key: string;
  id: string;
}
interface Position {
  KeyMarker?: string | undefined;
  UploadIdMarker?: string | undefined;
}

async function pageOfUploads(
  connection: S3Connection,
  prefix: string,
  position: Position,
  signal: AbortSignal | undefined,
): Promise<{ uploads: Upload[]; next: Position | undefined }> {
  const command = { Bucket: connection.config.bucket_name, Prefix: prefix, MaxUploads: PAGE, ...position };
  const page = await connection.send((client) => client.send(new ListMultipartUploadsCommand(command)), {
    ...{ doing: 's3:ListBucketMultipartUploads', signal, cut: signal },
  });
  return {
    uploads: (page.Uploads ?? []).flatMap(({ Key, UploadId }) =>
      Key === undefined || UploadId === undefined ? [] : [{ key: Key, id: UploadId }],
    ),
    next: page.IsTruncated
      ? { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker }
      : undefined,
  };
}

/** How many uploads a page has. */
const PAGE = 200;
/** How many pages of uploads are read, and how many uploads aborted. A list of a server may have no end. */
const MOST_PAGES = 10;
const MOST_ABORTED = 1000;
/** How long the end of an attempt waits for uploads to be aborted. */
const CLOSING_MILLISECONDS = 60_000;

/**
 * Aborts uploads of these keys that nobody will complete. Does nothing if the right to list uploads is missing. If there
 * are very many, the next attempt goes on.
 */
async function abortUploads(
  connection: S3Connection,
  keys: PlaceKeys,
  signal: AbortSignal | undefined,
): Promise<void> {
  const found: Upload[] = [];
  try {
    let at: Position | undefined = {};
    for (let pages = 0; at && pages < MOST_PAGES && found.length < MOST_ABORTED; pages += 1) {
      const page = await pageOfUploads(connection, keys.stem, at, signal);
      const own = page.uploads.filter(({ key }) => keys.owns(key));
      found.push(...own.slice(0, MOST_ABORTED - found.length));
      at = page.next;
    }
  } catch (error) {
    const code = error instanceof DestinationError ? error.code : undefined;
    if (code !== 'denied' && code !== 'rejected') throw error;
  }
  for (const { key, id } of found) {
    signal?.throwIfAborted();
    await abortUpload(connection, key, id);
  }
}
