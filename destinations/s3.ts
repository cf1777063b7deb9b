import type { FilesDestination } from './destination.ts';
import { fileOptions } from './file-options.ts';
import { type S3Config, s3Fields } from './s3/config.ts';
import { s3Steps } from './s3/steps.ts';
import { s3Store } from './s3/store.ts';

/** Files in a bucket of S3, or of any server that speaks its protocol. */
export const s3: FilesDestination<S3Config> = {
  kind: 'files',
  types: ['S3', 'AwsS3', 'S3Compatible'],
  fields: s3Fields,
  steps: s3Steps,
  options: fileOptions,
  store: s3Store,
};
