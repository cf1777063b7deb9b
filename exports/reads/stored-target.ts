import { findDestination } from '../../destinations/registry.ts';
import type { DestinationSettings } from '../../destinations/settings.ts';
import type { WriteTarget } from '../../destinations/write-target.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';

/** What is stored in `write_store` and `write_target`. */
export interface StoredTarget {
  store: string;
  target: WriteTarget;
}

/** One name for one server, whatever way it is written. */
function s3Store(endpoint: unknown, bucket: unknown): string {
  const url = typeof endpoint === 'string' && endpoint !== '' ? URL.parse(endpoint) : null;
  const server = !url || url.hostname.endsWith('.amazonaws.com') ? 'aws' : url.href;
  return `s3 ${server} ${bucket}`;
}

/**
 * Where an export writes, to be compared with where others do (destinations/write-target.ts). Null where no two exports
 * can write over each other: rows have keys of their own.
 */
export function writeTargetOf(
  { type, config }: DestinationSettings,
  { model, interval }: Pick<BatchExportRow, 'model' | 'interval'>,
): StoredTarget | null {
  const prefix = String(config.prefix ?? '');
  const at = (store: string, place: string): StoredTarget => ({
    store,
    target: { store, prefix: place, model, interval },
  });
  switch (findDestination(type)?.types[0]) {
    case 'S3':
      return at(s3Store(config.endpoint_url, config.bucket_name), prefix);
    case 'File': {
      // In a directory braces are just characters; a segment `.` is no part of the way.
      const segments = String(config.directory).split('/');
      const directory = segments.filter((one) => one !== '.').join('/');
      return at('file', `${directory.replaceAll(/[{}]/g, '$&$&')}/${prefix}`);
    }
    default:
      return null;
  }
}
