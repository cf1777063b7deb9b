import { z } from 'zod';
import { DestinationError } from './errors.ts';
import { type Interval, isoText } from './object-keys.ts';

const count = z.number().int().nonnegative();

const manifestSchema = z.object({
  version: z.literal(1),
  export_id: z.string().min(1),
  run_id: z.string(),
  model: z.string(),
  interval: z.object({ start: z.string().nullable(), end: z.string() }),
  format: z.string(),
  compression: z.string().nullable(),
  rows: count,
  bytes: count,
  /** Of all rows, whatever their order. */
  hash: z.string(),
  files: z.array(z.object({ key: z.string(), rows: count, bytes: count, sha256: z.string() })),
});

/** What an interval consists of at the destination. Written last: files that no manifest names are no export. */
export type Manifest = z.output<typeof manifestSchema>;
export type ManifestFile = Manifest['files'][number];

export function intervalText(interval: Interval): Manifest['interval'] {
  return { start: interval.start === null ? null : isoText(interval.start), end: isoText(interval.end) };
}

export function manifestBytes(manifest: Manifest): Buffer {
  return Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`);
}

/** Reads what lies where the manifest goes; refuses what is none, so that nothing foreign is written over. */
export function parseManifest(bytes: Buffer, place: string): Manifest {
  let json: unknown;
  try {
    json = JSON.parse(bytes.toString('utf8'));
  } catch {
    json = undefined;
  }
  const parsed = manifestSchema.safeParse(json);
  if (!parsed.success) {
    throw new DestinationError(
      'occupied',
      `${place} is there already and is no manifest of Sluice. Give this export another prefix, or remove that file.`,
    );
  }
  return parsed.data;
}

/** Refuses to write over what another export wrote. */
export function requireOwn(manifest: Manifest | undefined, exportId: string, place: string): void {
  if (manifest === undefined || manifest.export_id === exportId) return;
  throw new DestinationError(
    'occupied',
    `${place} belongs to the export ${manifest.export_id}: two exports write to the same place. Give this one another prefix.`,
  );
}
