import { createHash, randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import { type FileStore, MOST_SMALL_BYTES, type StoreWork, type Surroundings } from '../destination.ts';
import { DestinationError } from '../errors.ts';
import { requestLimit } from '../limits.ts';
import type { PlaceKeys } from '../object-keys.ts';
import { encryptionOf, type S3Config } from './config.ts';
import {
  conditionOf,
  connectS3,
  isConditionUnknown,
  isOutdated,
  place,
  type S3Connection,
} from './connection.ts';
import { abortUpload, crc32Text, head, MARK, PartBuffers, S3Upload } from './upload.ts';

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

    async sweep(keys) {
      swept = keys;
      await abortUploads(connection, keys);
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
          if ((answer.ContentLength ?? 0) > MOST_SMALL_BYTES) {
            (answer.Body as Readable).destroy();
            return { bytes: Buffer.alloc(0), version: answer.ETag ?? '' };
          }
          extend(requestLimit(limits, answer.ContentLength ?? 0));
          const bytes = Buffer.from((await answer.Body?.transformToByteArray()) ?? []);
          return { bytes, version: answer.ETag ?? '' };
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
          const hash = createHash('sha256');
          let bytes = 0;
          for await (const chunk of answer.Body as Readable) {
            signal?.throwIfAborted();
            hash.update(chunk);
            bytes += (chunk as Buffer).length;
          }
          if (answer.ContentLength !== undefined && bytes !== answer.ContentLength)
            throw new DestinationError('interrupted', `${place(config, key)}: the answer was cut off`);
          return { bytes, sha256: hash.digest('hex') };
        },
        { key, doing: 's3:GetObject', signal, cut: signal },
      );
    },

    async close() {
      try {
        if (inDoubt && swept) await abortUploads(connection, swept).catch(() => undefined);
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
): Promise<{ uploads: Upload[]; next: Position | undefined }> {
  const command = { Bucket: connection.config.bucket_name, Prefix: prefix, ...position };
  const page = await connection.send((client) => client.send(new ListMultipartUploadsCommand(command)), {
    doing: 's3:ListBucketMultipartUploads',
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

/** Aborts uploads of these keys that nobody will complete. Does nothing if the right to list uploads is missing. */
async function abortUploads(connection: S3Connection, keys: PlaceKeys): Promise<void> {
  const found: Upload[] = [];
  try {
    for (let at: Position | undefined = {}; at; ) {
      const page = await pageOfUploads(connection, keys.stem, at);
      found.push(...page.uploads.filter(({ key }) => keys.owns(key)));
      at = page.next;
    }
  } catch (error) {
    const code = error instanceof DestinationError ? error.code : undefined;
    if (code !== 'denied' && code !== 'rejected') throw error;
  }
  for (const { key, id } of found) await abortUpload(connection, key, id);
}
