import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';
import { generateKey, newKeyId, parseKeyring } from './envelope.ts';

/**
 * The keyring of an installation that was given none: read from `encryption-keys` in the data directory, made
 * there (mode 0600) if it is missing. Returns the value for SLUICE_ENCRYPTION_KEYS.
 */
export function ensureKeyFile(dataDir: string): string {
  const file = keyFile(dataDir);
  if (!existsSync(file)) {
    mkdirSync(dataDir, { recursive: true });
    const temporary = `${file}.${process.pid}`;
    const handle = openSync(temporary, 'wx', 0o600);
    try {
      writeSync(handle, `${generateKey(newKeyId())}\n`);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    try {
      // A link, not a rename: when two processes make the file at once, the first one's key stays.
      linkSync(temporary, file);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    } finally {
      unlinkSync(temporary);
    }
  }
  const text = readFileSync(file, 'utf8')
    .trim()
    .split(/\s*\n\s*/)
    .join(',');
  parseKeyring(text);
  return text;
}

export function keyFile(dataDir: string): string {
  return path.join(dataDir, 'encryption-keys');
}
