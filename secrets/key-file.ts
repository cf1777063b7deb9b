import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';
import { formatKeyring, generateKey, type Keyring, newKeyId, parseKeyring } from './envelope.ts';

/**
 * Returns the keyring of an installation whose settings name none, as a value for SLUICE_ENCRYPTION_KEYS. The keyring
 * is in the file `encryption-keys` of the data directory. If the file is missing, this creates it (mode 0600).
 */
export function ensureKeyFile(dataDir: string): string {
  const file = keyFile(dataDir);
  if (!existsSync(file)) {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    const temporary = `${file}.${process.pid}`;
    const handle = openSync(temporary, 'wx', 0o600);
    try {
      writeSync(handle, `${generateKey(newKeyId())}\n`);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    try {
      // A link instead of a rename: if two processes create the file at once, the first key stays.
      linkSync(temporary, file);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    } finally {
      unlinkSync(temporary);
    }
  }
  const text = readKeyFile(file);
  parseKeyring(text);
  return text;
}

/** Reads a file with a key on each line, as a value for SLUICE_ENCRYPTION_KEYS. */
export function readKeyFile(file: string): string {
  return readFileSync(file, 'utf8')
    .trim()
    .split(/\s*\n\s*/)
    .join(',');
}

/** Replaces the keys in a file. After a power failure, the file has either the old keys or the new ones. */
export function writeKeyFile(file: string, keyring: Keyring): void {
  const temporary = `${file}.${process.pid}.new`;
  const handle = openSync(temporary, 'w', 0o600);
  try {
    writeSync(handle, `${formatKeyring(keyring, '\n')}\n`);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  renameSync(temporary, file);
  const directory = openSync(path.dirname(file), 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

export function keyFile(dataDir: string): string {
  return path.join(dataDir, 'encryption-keys');
}
