import { HeadObjectCommand, type HeadObjectCommandOutput, PutObjectCommand } from '@aws-sdk/client-s3';
import { DestinationError } from '../errors.ts';
import type { S3Connection } from './client.ts';
import { encryptionOf } from './config.ts';
import { place, statusOf } from './errors.ts';
import { crc32Text } from './parts.ts';

/** An object as an attempt writes it: its labels tell it from those of others. */
export interface LabelledObject {
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
export const versionThere = async (object: LabelledObject, signal?: AbortSignal) =>
  (await head(object, signal))?.ETag;

/** Whether what is there is what this very attempt wrote. */
export const isOwn = async (object: LabelledObject) =>
  (await head(object))?.Metadata?.['sluice-attempt'] === object.labels['sluice-attempt'];

export const conditionOf = (seen: string | undefined) =>
  seen === undefined ? { IfNoneMatch: '*' } : { IfMatch: seen };

/** What was seen is not there any more. */
export const isOutdated = (error: unknown, seen: string | undefined) =>
  statusOf(error) === 412 || (statusOf(error) === 404 && seen !== undefined);

/** There are servers that do not know conditions. */
export const isConditionUnknown = (error: unknown) =>
  statusOf(error) === 501 || (error as Error).name === 'NotImplemented';

export const overtaken = ({ connection, key }: LabelledObject, cause: unknown) =>
  new DestinationError('overtaken', `${place(connection.config, key)}: somebody else was faster`, { cause });

/**
 * Writes an object in one request, in the place of what was seen there. A request that is under way for long must not
 * arrive on top of what another attempt has written since.
 */
export async function putWhole(
  object: LabelledObject,
  body: Buffer,
  seen: string | undefined,
): Promise<void> {
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
