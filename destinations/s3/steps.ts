import { DeleteObjectCommand, HeadBucketCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import type { Surroundings } from '../destination.ts';
import { DestinationError } from '../errors.ts';
import { probeKey } from '../object-keys.ts';
import { closing } from '../requests.ts';
import { encryptionOf, type S3Config } from './config.ts';
import { connectS3 } from './connection.ts';

/** Answers what is wrong with the bucket, or nothing. */
export async function checkBucket(
  config: S3Config,
  surroundings: Surroundings,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const name = JSON.stringify(config.bucket_name);
  return closing(connectS3(config, surroundings), async (connection) => {
    try {
      await connection.send((client) => client.send(new HeadBucketCommand({ Bucket: config.bucket_name })), {
        doing: 's3:ListBucket',
        signal,
        cut: signal,
      });
      return undefined;
    } catch (error) {
      const code = error instanceof DestinationError ? error.code : undefined;
      if (code === 'missing') return `Bucket ${name} does not exist or we don't have permissions to use it`;
      if (code === 'denied') return `We couldn't access bucket ${name}. Check the provided credentials`;
      throw error;
    }
  });
}

/** Writes an empty object and deletes it. Answers why it cannot, or nothing. */
export async function checkWriting(
  config: S3Config,
  surroundings: Surroundings,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const Key = probeKey(config.prefix);
  const target = { Bucket: config.bucket_name, Key };
  return closing(connectS3(config, surroundings), async (connection) => {
    try {
      await connection.send(
        (client) => client.send(new PutObjectCommand({ ...target, Body: '', ...encryptionOf(config) })),
        { key: Key, doing: 's3:PutObject', signal, cut: signal },
      );
    } catch (error) {
      if (error instanceof DestinationError && !error.retryable)
        return `We couldn't write to the bucket: ${error.message}`;
      throw error;
    }
    try {
      await connection.send((client) => client.send(new DeleteObjectCommand(target)), {
        key: Key,
        doing: 's3:DeleteObject',
      });
    } catch (error) {
      if (error instanceof DestinationError && error.code === 'denied') {
        return (
          `We can write to the bucket but not delete from it, so that ${JSON.stringify(Key)} stays there. ` +
          's3:DeleteObject is needed to remove files of an interval that is exported again with fewer files'
        );
      }
      throw error;
    }
    return undefined;
  });
}
