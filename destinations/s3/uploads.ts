import { AbortMultipartUploadCommand, ListMultipartUploadsCommand } from '@aws-sdk/client-s3';
import { DestinationError } from '../errors.ts';
import type { ObjectKeys } from '../object-keys.ts';
import type { S3Connection } from './client.ts';

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

/** Aborts uploads of these keys that nobody will complete. Not every operator gives the right to list: goes without. */
export async function abortUploads(connection: S3Connection, keys: ObjectKeys): Promise<void> {
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
