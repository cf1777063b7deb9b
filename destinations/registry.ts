import type { Column } from '../formats/columns.ts';
import type { ColumnSet, Model } from '../models/index.ts';
import { azureBlob } from './azure-blob/azure-blob.ts';
import { describeField, type FieldDescription, type RawConfig } from './config.ts';
import type { Destination } from './destination.ts';
import { DestinationConfigError } from './errors.ts';
import { file } from './file/file.ts';
import { googleCloudStorage } from './google-cloud-storage/google-cloud-storage.ts';
import { http } from './http/http.ts';
import { noOp } from './no-op/no-op.ts';
import { postgres } from './postgres/postgres.ts';
import { s3 } from './s3/s3.ts';
import type { WriteTarget } from './write-target.ts';

/** A destination with a configuration of any type. Only `bind` joins the two, after it has checked the configuration. */
type AnyDestination = Destination<unknown>;

/** Every destination. Their `types` are all the names that the API knows. */
const DESTINATIONS = [
  ...[s3, azureBlob, googleCloudStorage, postgres, http, file, noOp],
] as unknown as readonly AnyDestination[];

export const DESTINATION_TYPES: readonly string[] = DESTINATIONS.flatMap((destination) => destination.types);

export function findDestination(type: string): AnyDestination | undefined {
  return DESTINATIONS.find((destination) => destination.types.includes(type));
}

export function requireDestination(type: string): AnyDestination {
  const found = findDestination(type);
  if (!found) throw new DestinationConfigError(`"${type}" is not a valid choice.`, 'type');
  return found;
}

/** The default columns that a type takes. Of a type that no longer exists, those of files: they show the most. */
export const columnsOfType = (type: string): ColumnSet => findDestination(type)?.columns ?? 'files';

/** Whether a backfill into this type may have no end. */
export const takesOpenEnd = (type: string): boolean => findDestination(type)?.takesOpenEnd ?? false;

/**
 * Where a configuration writes files, see `FilesDestination`. Null for destinations that store rows: their keys keep
 * exports from overwriting each other.
 */
export function placeOfFiles(
  { type, config }: { type: string; config: RawConfig },
  folder: string | null,
): Pick<WriteTarget, 'store' | 'prefix'> | null {
  const destination = findDestination(type);
  return destination?.kind === 'files' ? destination.writesTo(config, folder) : null;
}

/** Refuses a query if the destination takes rows only as they are. */
export function requireQuery(type: string): void {
  if (requireDestination(type).takesQuery) return;
  throw new DestinationConfigError(
    `${type} batch exports send rows as they are: 'hogql_query' is not supported`,
    'hogql_query',
  );
}

/** Refuses columns, which a query selects, that the destination could not write. */
export function requireColumns(
  type: string,
  model: Pick<Model, 'name' | 'table'>,
  columns: readonly Column[],
): void {
  const fault = requireDestination(type).columnFault?.(columns, model);
  if (fault !== undefined) throw new DestinationConfigError(fault, 'hogql_query');
}

/** Every destination, by the first of its names. */
export const describedDestinations = (): readonly Pick<
  AnyDestination,
  'types' | 'kind' | 'columns' | 'docs'
>[] => DESTINATIONS;

interface DescribedKey extends FieldDescription {
  key: string;
  /** The destinations that have this key. */
  types: string[];
}

/** Describes every key of every destination. Equal keys of several destinations come once. */
export function describeKeys(): DescribedKey[] {
  const found = new Map<string, DescribedKey>();
  for (const type of DESTINATION_TYPES) {
    const { types, fields } = requireDestination(type);
    if (types[0] !== type) continue;
    for (const [key, field] of Object.entries(fields.shape)) {
      const description = describeField(field);
      const id = JSON.stringify([key, description]);
      const known = found.get(id);
      if (known) known.types.push(type);
      else found.set(id, { key, types: [type], ...description });
    }
  }
  return [...found.values()];
}
