import { type Keyring, parseKeyring } from './envelope.ts';
import { readKeyFile } from './key-file.ts';

/** Where a process has its keys from. */
export interface KeySource {
  /** Undefined: the process has none, and can neither store nor read secrets. */
  readonly keyring: Keyring | undefined;
  /** Reads the keys again, if they can change. If that fails, it throws and the keys stay. */
  refresh(): void;
}

/** The settings that give a process its keys. */
export interface KeySettings {
  SLUICE_ENCRYPTION_KEYS?: string | undefined;
  SLUICE_ENCRYPTION_KEY_FILE?: string | undefined;
}

/** Takes the keys from the settings. Those of a file change with it: the keyring stays the same object. */
export function openKeys({
  SLUICE_ENCRYPTION_KEYS: text,
  SLUICE_ENCRYPTION_KEY_FILE: file,
}: KeySettings): KeySource {
  if (text !== undefined) return { keyring: parseKeyring(text), refresh: () => undefined };
  if (file === undefined) return { keyring: undefined, refresh: () => undefined };
  let current = parseKeyring(readKeyFile(file));
  const keyring: Keyring = {
    get primary() {
      return current.primary;
    },
    get keys() {
      return current.keys;
    },
  };
  return {
    keyring,
    refresh() {
      current = parseKeyring(readKeyFile(file));
    },
  };
}
