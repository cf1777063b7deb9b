import { transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import type { Keyring } from '../../secrets/envelope.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { changes } from '../../tenancy/audit.ts';
import { secretKeys, withoutSecretKeys } from '../../values/marked-secrets.ts';
import { checkConfig } from '../kinds/config.ts';
import type { RawConfig } from '../kinds/kind.ts';
import { type AnyKind, findKind } from '../kinds/registry.ts';
import { openConfig, openSecrets, sealConfig } from '../reads/settings.ts';
import { shownIntegration } from '../reads/shown.ts';
import {
  type IntegrationKey,
  type IntegrationRow,
  lockIntegration,
  updateIntegration,
} from '../rows/integrations.ts';
import { sameHosts } from '../rules/hosts.ts';
import { auditIntegration, maskedChanges } from './audit.ts';
import type { IntegrationCommandDependencies } from './dependencies.ts';
import { refusing } from './refusals.ts';

/** What a user sets about an integration. Keys of the configuration that are left out keep their values. */
export interface IntegrationInput {
  kind?: string | undefined;
  config?: RawConfig | undefined;
}

/** Changes the configuration of an integration. */
export async function changeIntegration(
  { pool, keyring }: IntegrationCommandDependencies,
  actor: Actor,
  key: IntegrationKey,
  { kind: name, config: sent = {} }: IntegrationInput,
): Promise<IntegrationRow> {
  return transaction(pool, async (client) => {
    const before = await lockIntegration(client, key);
    const kind = before && findKind(before.kind);
    if (!kind) throw refuse.absent();
    if (name !== undefined && name !== before.kind) {
      throw refuse.invalid('kind', 'The kind of an integration cannot be changed. Create another one.');
    }
    if (Object.keys(sent).length === 0) return before;
    const stored = refusing(() => sealConfig(keyring, before.id, kind, merged(keyring, kind, before, sent)));
    const after = await updateIntegration(client, key, stored);
    if (!after) throw refuse.absent();
    const { changes: plain } = changes(shownIntegration(before), shownIntegration(after));
    const replaced = secretKeys(kind.fields).filter((one) => Object.hasOwn(sent, one));
    await auditIntegration(client, actor, key, 'updated', {
      kind: kind.kind,
      changes: [...plain, ...maskedChanges(replaced)],
    });
    return after;
  });
}

/** The configuration after a change. If it moves the hosts to which secrets go, it must contain the secrets. */
function merged(
  keyring: Keyring | undefined,
  kind: AnyKind,
  row: IntegrationRow,
  sent: RawConfig,
): RawConfig {
  const isSent = (key: string) => Object.hasOwn(sent, key);
  const secrets = secretKeys(kind.fields);
  // Secrets that cannot be opened any more can be replaced.
  const hidden = secrets.every(isSent) ? {} : openSecrets(keyring, row);
  const config = checkConfig(kind, { ...withoutSecretKeys(kind.fields, row.config), ...hidden, ...sent });
  const kept = secrets.filter((key) => !isSent(key) && (hidden[key] ?? null) !== null);
  if (kept.length === 0) return config;
  if (sameHosts(kind.hosts(openConfig(keyring, kind, row)), kind.hosts(config))) return config;
  throw refuse.invalid(
    `config__${kept[0]}`,
    `This changes the hosts to which Sluice sends the secrets, so send the secrets along: ${kept.join(', ')}.`,
    { code: 'required' },
  );
}
