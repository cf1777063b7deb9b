import { readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { PlainError } from '../values/plain-error.ts';

/** The contents of a backup. With it, a restore can detect a damaged backup before it changes anything. */
const manifest = z.object({
  format: z.literal(1),
  created_at: z.string(),
  migrations: z.array(z.object({ id: z.int(), name: z.string(), hash: z.string() })),
  /** The ids of the keys that the secrets in the backup are sealed with. The backup does not contain the keys. */
  encryption_key_ids: z.array(z.string()),
  tables: z.array(
    z.object({
      name: z.string(),
      columns: z.array(z.string()),
      file: z.string().regex(/^[a-z0-9_]+\.copy\.zst$/),
      rows: z.int(),
      bytes: z.int(),
      sha256: z.string(),
    }),
  ),
  sequences: z.array(z.object({ name: z.string(), value: z.int() })),
});

export type BackupManifest = z.output<typeof manifest>;

export const MANIFEST_FILE = 'manifest.json';

/** A backup or a restore is impossible. The message says why. */
export class BackupError extends PlainError {
  override readonly name = 'BackupError';
}

export function readBackupManifest(directory: string): BackupManifest {
  const file = path.join(directory, MANIFEST_FILE);
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new BackupError(`${directory} is not a backup: ${(error as Error).message}`);
  }
  const parsed = manifest.safeParse(content);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new BackupError(
      `${file} is not a manifest of this version: ${issue?.path.join('.')}: ${issue?.message}`,
    );
  }
  return parsed.data;
}
