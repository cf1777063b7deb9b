import { createHash, randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';
import { DeleteObjectCommand, GetObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import type { Surroundings } from '../destination.ts';
import { DestinationError } from '../errors.ts';
import type { FileStore } from '../file-store.ts';
import type { ObjectKeys } from '../object-keys.ts';
import { connectS3 } from './client.ts';
import { encryptionOf, type S3Config } from './config.ts';
import { place } from './errors.ts';
import { S3File } from './file.ts';
import { conditionOf, isConditionUnknown, isOutdated } from './objects.ts';
import { crc32Text, PartBuffers } from './parts.ts';
import { abortUploads } from './uploads.ts';

/** No manifest is larger; what is, is none. */
const MOST_SMALL_BYTES = 64 * 1024 * 1024;

export function s3Store(config: S3Config, surroundings: Surroundings): FileStore {
  const connection = connectS3(config, surroundings);
  const buffers = new PartBuffers();
  const Bucket = config.bucket_name;
  let opened = 0;
  let swept: ObjectKeys | undefined;
  let inDoubt = false;

  return {
    describe: (key) => place(config, key),

    async sweep(keys) {
      swept = keys;
      await abortUploads(connection, keys);
    },

    async open(key, labels, signal) {
      opened += 1;
      return new S3File({
        connection,
        buffers,
        key,
        labels: { ...labels, 'sluice-attempt': randomUUID() },
        signal,
        mayWait: opened === 1,
        onDoubt: () => {
          inDoubt = true;
        },
      });
    },

    async get(key, signal) {
      return connection.send(
        async (client, abortSignal) => {
          const answer = await client
            .send(new GetObjectCommand({ Bucket, Key: key }), abortSignal ? { abortSignal } : {})
            .catch(absent);
          if (!answer) return undefined;
          if ((answer.ContentLength ?? 0) > MOST_SMALL_BYTES) {
            (answer.Body as Readable).destroy();
            throw new DestinationError(
              'occupied',
              `${place(config, key)} is there already and is no manifest`,
            );
          }
          const bytes = Buffer.from((await answer.Body?.transformToByteArray()) ?? []);
          return { bytes, version: answer.ETag ?? '' };
        },
        { key, doing: 's3:GetObject and s3:ListBucket', signal },
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
        { key, doing: 's3:PutObject' },
      );
    },

    async remove(key) {
      await connection.send((client) => client.send(new DeleteObjectCommand({ Bucket, Key: key })), {
        key,
        doing: 's3:DeleteObject',
      });
    },

    async digest(key, signal) {
      return connection.send(
        async (client, abortSignal) => {
          const answer = await client
            .send(new GetObjectCommand({ Bucket, Key: key }), abortSignal ? { abortSignal } : {})
            .catch(absent);
          if (!answer) return undefined;
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
        { key, doing: 's3:GetObject', signal },
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
