import { projectFolder } from '../../destinations/file/folder.ts';
import { findDestination } from '../../destinations/registry.ts';
import type { DestinationSettings } from '../../destinations/settings.ts';
import type { WriteTarget } from '../../destinations/write-target.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';

/** The contents of the columns `write_store` and `write_target`. */
export interface StoredTarget {
  store: string;
  target: WriteTarget;
}

/** The name of a bucket's store. All spellings of one server give the same name. */
function s3Store(endpoint: unknown, bucket: unknown): string {
  const url = typeof endpoint === 'string' && endpoint !== '' ? URL.parse(endpoint) : null;
  const server = !url || url.hostname.endsWith('.amazonaws.com') ? 'aws' : url.href;
  return `s3 ${server} ${bucket}`;
}

/**
 * Where an export writes files. `targetsCollide` of destinations/write-target.ts compares it with the targets of other
 * exports. Null for destinations that store rows: their keys keep exports from overwriting each other.
 */
export function storedTargetOf(
  { type, config }: DestinationSettings,
  { model, interval, folder }: Pick<BatchExportRow, 'model' | 'interval' | 'folder'>,
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
      // In the directory, unlike in the prefix, braces have no meaning. A segment `.` changes nothing.
      const segments = String(config.directory).split('/');
      const directory = segments.filter((one) => one !== '.').join('/');
      return at(
        folder === null ? 'file' : `file ${folder}`,
        `${directory.replaceAll(/[{}]/g, '$&$&')}/${prefix}`,
      );
    }
    default:
      return null;
  }
}

/**
 * Returns the folder that an export does not leave. A new export gets the folder of its project, and keeps it wherever
 * it is moved. An export from before there were folders keeps the whole export root, as long as its files stay where
 * they are in it.
 */
export function folderOf(
  projectId: number,
  current: Pick<BatchExportRow, 'folder' | 'config'> | undefined,
  { config }: DestinationSettings,
): string | null {
  if (!current) return projectFolder(projectId);
  const stays = (['directory', 'prefix'] as const).every(
    (key) => (config[key] ?? '') === (current.config[key] ?? ''),
  );
  return current.folder ?? (stays ? null : projectFolder(projectId));
}
