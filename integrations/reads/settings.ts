import { type Keyring, open, SecretError, seal } from '../../secrets/envelope.ts';
import { onlySecretKeys, withoutSecretKeys } from '../../values/marked-secrets.ts';
import { checkConfig } from '../kinds/config.ts';
import type { RawConfig } from '../kinds/kind.ts';
import type { AnyKind } from '../kinds/registry.ts';
import type { IntegrationRow } from '../rows/integrations.ts';

/** Binds a secret to its row: copied to another row, it cannot be decrypted. */
const contextOf = (integrationId: number) => `integrations/${integrationId}/secrets`;

function needed(keyring: Keyring | undefined): Keyring {
  if (keyring) return keyring;
  throw new SecretError(
    'SLUICE_ENCRYPTION_KEYS is not set, so the secrets of integrations can be neither stored nor read. Give every process the same keys.',
  );
}

/** Prepares a checked configuration for storing: encrypts its secrets apart from the rest. Throws a SecretError. */
export function sealConfig(
  keyring: Keyring | undefined,
  integrationId: number,
  kind: AnyKind,
  config: RawConfig,
): Pick<IntegrationRow, 'config' | 'secrets'> {
  const secrets = JSON.stringify(onlySecretKeys(kind.fields, config));
  return {
    config: { ...withoutSecretKeys(kind.fields, config), ...kind.derived?.(config) },
    secrets: seal(needed(keyring), secrets, contextOf(integrationId)),
  };
}

/** Reads the secrets of a stored integration. Throws a SecretError if they cannot be decrypted. */
export function openSecrets(
  keyring: Keyring | undefined,
  { id, secrets }: Pick<IntegrationRow, 'id' | 'secrets'>,
): RawConfig {
  return JSON.parse(open(needed(keyring), secrets, contextOf(id))) as RawConfig;
}

/** Reads a stored configuration as its kind takes it, with its secrets decrypted. */
export const openConfig = (
  keyring: Keyring | undefined,
  kind: AnyKind,
  row: Pick<IntegrationRow, 'id' | 'config' | 'secrets'>,
): RawConfig =>
  checkConfig(kind, { ...withoutSecretKeys(kind.fields, row.config), ...openSecrets(keyring, row) });
