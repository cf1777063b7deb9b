import { projectFolder } from '../../destinations/file/folder.ts';
import { placeOfFiles } from '../../destinations/registry.ts';
import type { DestinationSettings } from '../../destinations/settings.ts';
import type { WriteTarget } from '../../destinations/write-target.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';

/** The contents of the columns `write_store` and `write_target`. */
export interface StoredTarget {
  store: string;
  target: WriteTarget;
}

/**
 * Where an export writes files. `targetsCollide` of destinations/write-target.ts compares it with the targets of other
 * exports. Null for destinations that store rows.
 */
export function storedTargetOf(
  settings: DestinationSettings,
  { model, interval, folder }: Pick<BatchExportRow, 'model' | 'interval' | 'folder'>,
): StoredTarget | null {
  const place = placeOfFiles(settings, folder);
  return place && { store: place.store, target: { ...place, model, interval } };
}

/**
 * Returns the folder that an export does not leave. A new export gets the folder of its project, and keeps it wherever
 * it is moved. An export from before there were folders keeps the whole export root, as long as its files stay where
 * they are in it.
 */
export function folderOf(
  projectId: number,
  current: Pick<BatchExportRow, 'folder' | 'config'> | undefined,
  settings: DestinationSettings,
): string | null {
  if (!current) return projectFolder(projectId);
  const placeOf = (config: DestinationSettings['config']) =>
    JSON.stringify(placeOfFiles({ ...settings, config }, null));
  const stays = placeOf(settings.config) === placeOf(current.config);
  return current.folder ?? (stays ? null : projectFolder(projectId));
}
