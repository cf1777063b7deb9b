import type { RawConfig } from '../../destinations/config.ts';
import { requireDestination } from '../../destinations/registry.ts';
import type { DestinationSettings } from '../../destinations/settings.ts';
import { type Keyring, open, rewrap, SecretError, seal, sealedBy } from '../../secrets/envelope.ts';
import { withoutSecretKeys } from '../../values/marked-secrets.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';

/** The columns that hold the destination of an export. */
export type StoredSettings = Pick<BatchExportRow, 'destination_type' | 'config' | 'secrets'>;

/** Binds a secret to its row: copied to another row, it cannot be decrypted. */
const contextOf = (exportId: string) => `batch_exports/${exportId}/secrets`;

function needed(keyring: Keyring | undefined): Keyring {
  if (keyring) return keyring;
  throw new SecretError(
    'SLUICE_ENCRYPTION_KEYS is not set, so the secrets of destinations can be neither stored nor read. Give every process the same keys.',
  );
}

/**
 * Prepares a checked destination for storing: encrypts its secrets apart from the rest. Throws a SecretError if it has
 * secrets and there are no keys.
 */
export function sealSettings(
  keyring: Keyring | undefined,
  exportId: string,
  { type, config }: DestinationSettings,
): StoredSettings {
  const shown = withoutSecretKeys(requireDestination(type).fields, config);
  const hidden = Object.entries(config).filter(([key]) => !Object.hasOwn(shown, key));
  if (hidden.length === 0) return { destination_type: type, config: shown, secrets: null };
  const text = JSON.stringify(Object.fromEntries(hidden));
  return { destination_type: type, config: shown, secrets: seal(needed(keyring), text, contextOf(exportId)) };
}

/**
 * Returns a stored destination for storing it once more: its secrets are sealed with the first key, so that nobody writes
 * what a rotation has replaced. Without their key they stay as they are.
 */
export function keepSettings<T extends StoredSettings>(keyring: Keyring | undefined, stored: T): T {
  const { secrets } = stored;
  if (secrets === null || !keyring?.keys.has(sealedBy(secrets))) return stored;
  return { ...stored, secrets: rewrap(keyring, secrets) };
}

/** Reads the destination of a stored export, with its secrets decrypted. Throws a SecretError if that fails. */
export function openSettings(
  keyring: Keyring | undefined,
  row: StoredSettings & Pick<BatchExportRow, 'id'>,
): DestinationSettings {
  const { destination_type: type, config, secrets } = row;
  if (secrets === null) return { type, config };
  const hidden = JSON.parse(open(needed(keyring), secrets, contextOf(row.id))) as RawConfig;
  return { type, config: { ...config, ...hidden } };
}
