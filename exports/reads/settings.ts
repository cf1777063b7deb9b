import { type RawConfig, withoutSecretKeys } from '../../destinations/config.ts';
import { requireDestination } from '../../destinations/registry.ts';
import type { DestinationSettings } from '../../destinations/settings.ts';
import { type Keyring, open, SecretError, seal } from '../../secrets/envelope.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';

/** The columns of an export that its destination takes. */
export type StoredSettings = Pick<BatchExportRow, 'destination_type' | 'config' | 'secrets'>;

/** A secret opens only where it was sealed for: moved to another row it is useless. */
const contextOf = (exportId: string) => `batch_exports/${exportId}/secrets`;

function needed(keyring: Keyring | undefined): Keyring {
  if (keyring) return keyring;
  throw new SecretError(
    'SLUICE_ENCRYPTION_KEYS is not set, so the secrets of destinations can be neither stored nor read. Give every process the same keys.',
  );
}

/**
 * A checked destination as it is stored: what anybody may see, and the rest sealed. Throws a SecretError if there are
 * secrets and no keys.
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

/** The destination of a stored export, its secrets among its configuration. Throws a SecretError if they do not open. */
export function openSettings(
  keyring: Keyring | undefined,
  row: StoredSettings & Pick<BatchExportRow, 'id'>,
): DestinationSettings {
  const { destination_type: type, config, secrets } = row;
  if (secrets === null) return { type, config };
  const hidden = JSON.parse(open(needed(keyring), secrets, contextOf(row.id))) as RawConfig;
  return { type, config: { ...config, ...hidden } };
}
