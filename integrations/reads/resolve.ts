import type { Queryable } from '../../db/pool.ts';
import type { AccessTokens } from '../../egress/google-tokens.ts';
import type { Keyring } from '../../secrets/envelope.ts';
import { bearerHeader, text } from '../kinds/kind.ts';
import { findKind } from '../kinds/registry.ts';
import { findIntegration } from '../rows/integrations.ts';
import { markerOf, type Substitution } from '../rules/substitution.ts';
import { openConfig } from './settings.ts';
import { shownIntegration } from './shown.ts';

/** The largest id that the database has. */
const MAX_ID = 2 ** 31 - 1;

/** An integration as a run uses it. */
export interface ResolvedIntegration {
  id: number;
  kind: string;
  /** What a program may see: the configuration without its secrets, and a placeholder for each secret that it may send. */
  inputs: Record<string, unknown>;
  /** What puts the secrets into requests. The runtime keeps it to itself. */
  substitution: Substitution;
}

/**
 * Reads an integration of a project for a run. Undefined: the project has no such integration. Throws a SecretError if its
 * secrets cannot be decrypted, and an AccessTokenError. `seed` is a random secret of the run, see `markerOf`. Without
 * `tokens`, what stands for a token has no value: nothing may be sent.
 */
export async function resolveIntegration(
  queryable: Queryable,
  keyring: Keyring | undefined,
  projectId: number,
  integrationId: number,
  seed: string,
  tokens?: Pick<AccessTokens, 'tokenFor'>,
): Promise<ResolvedIntegration | undefined> {
  if (!Number.isInteger(integrationId) || integrationId < 1 || integrationId > MAX_ID) return undefined;
  const row = await findIntegration(queryable, { projectId, integrationId });
  const kind = row && findKind(row.kind);
  if (!kind) return undefined;
  const config = openConfig(keyring, kind, row);
  const signing = kind.signing?.(config) ?? null;
  const values =
    signing?.scheme === 'google-jwt'
      ? valuesOfToken((await tokens?.tokenFor(signing)) ?? '')
      : kind.values(config);
  const placeholders = Object.entries(values).map(([name, { value, form }]) => ({
    ...{ name, value, form },
    marker: markerOf(seed, row.id, name),
  }));
  return {
    id: row.id,
    kind: row.kind,
    inputs: {
      ...shownIntegration(row).config,
      ...Object.fromEntries(placeholders.map(({ name, marker }) => [name, marker])),
    },
    substitution: {
      integrationId: row.id,
      kind: row.kind,
      placeholders,
      hosts: kind.hosts(config),
      signing,
    },
  };
}

/** What functions get of an access token. */
export const valuesOfToken = (token: string) => ({
  access_token: text(token),
  authorization: bearerHeader(token),
});
