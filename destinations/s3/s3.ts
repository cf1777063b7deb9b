import { DeleteObjectCommand, HeadBucketCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import type { FilesDestination } from '../destination.ts';
import { DestinationError } from '../errors.ts';
import { fileOptions, ONCE_BY_MANIFEST } from '../file-options.ts';
import { probeKey } from '../object-keys.ts';
import { closing } from '../requests.ts';
import { encryptionOf, type S3Config, s3Address, s3Fields, s3Place } from './config.ts';
import { connectS3 } from './connection.ts';
import { s3Store } from './store.ts';

/** Writes files into a bucket of S3 or of any server that speaks its protocol. */
export const s3: FilesDestination<S3Config> = {
  kind: 'files',
  types: ['S3', 'AwsS3', 'S3Compatible'],
  fields: s3Fields,
  address: s3Address,
  columns: 'files',
  takesQuery: true,
  takesOpenEnd: false,
  writesTo: s3Place,
  docs: {
    once: ONCE_BY_MANIFEST,
    address: [
      "without `endpoint_url`: the `region`, which is a part of the name of Amazon's host",
      'with `endpoint_url`: this URL and `use_virtual_style_addressing`; with the virtual style also `bucket_name`, which is then a part of the host name',
    ],
  },
  options: fileOptions,
  store: s3Store,
  steps: [
    {
      name: 'Check S3 bucket exists',
      description:
        'Ensure the configured S3 bucket exists and that we have the required permissions to access it.',
      async run(config, surroundings, signal) {
        const name = JSON.stringify(config.bucket_name);
        return closing(connectS3(config, surroundings), async (connection) => {
          try {
            await connection.send(
              (client) => client.send(new HeadBucketCommand({ Bucket: config.bucket_name })),
              { doing: 's3:ListBucket', signal, cut: signal },
            );
            return undefined;
          } catch (error) {
            const code = error instanceof DestinationError ? error.code : undefined;
            if (code === 'missing')
              return `Bucket ${name} does not exist or we don't have permissions to use it`;
            if (code === 'denied') return `We couldn't access bucket ${name}. Check the provided credentials`;
            throw error;
          }
        });
      },
    },
    {
      name: 'Write to S3 bucket',
      description: 'Ensure we can write below the configured prefix, by an object that is deleted again.',
      async run(config, surroundings, signal) {
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
      },
    },
  ],
};
