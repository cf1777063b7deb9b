import type { FilesDestination } from '../destination.ts';
import { fileOptions, ONCE_BY_MANIFEST } from '../file-options.ts';
import { type S3Config, s3Address, s3Fields, s3Place } from './config.ts';

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
  // The official client takes long to load, so only what speaks to S3 loads it.
  store: async (...given) => (await import('./store.ts')).s3Store(...given),
  steps: [
    {
      name: 'Check S3 bucket exists',
      description:
        'Ensure the configured S3 bucket exists and that we have the required permissions to access it.',
      run: async (...given) => (await import('./steps.ts')).checkBucket(...given),
    },
    {
      name: 'Write to S3 bucket',
      description: 'Ensure we can write below the configured prefix, by an object that is deleted again.',
      run: async (...given) => (await import('./steps.ts')).checkWriting(...given),
    },
  ],
};
