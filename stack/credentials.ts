import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import path from 'node:path';

/** The content of `credentials.json` in the data directory. Tools of operators read this file. */
export interface Credentials {
  base_url: string;
  capture_url: string;
  /** null when an external Temporal is used and TEMPORAL_UI_URL is not set. */
  temporal_ui_url: string | null;
  personal_api_key: string;
  project_api_key: string;
  organization_id: string;
  project_id: number;
}

export function credentialsFile(dataDir: string): string {
  return path.join(dataDir, 'credentials.json');
}

/** The credentials that an earlier start wrote; undefined if the file is missing or invalid. */
export function readCredentials(dataDir: string): Credentials | undefined {
  try {
    const found = JSON.parse(readFileSync(credentialsFile(dataDir), 'utf8'));
    return typeof found?.personal_api_key === 'string' && typeof found.project_api_key === 'string'
      ? found
      : undefined;
  } catch {
    return undefined;
  }
}

/** Replaces the file atomically, so that a reader sees either the old or the new credentials. Only the owner can read it. */
export function writeCredentials(dataDir: string, credentials: Credentials): void {
  const file = credentialsFile(dataDir);
  const draft = `${file}.${process.pid}`;
  const handle = openSync(draft, 'w', 0o600);
  try {
    writeSync(handle, `${JSON.stringify(credentials, null, 2)}\n`);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  renameSync(draft, file);
}
