import type { Pool } from '../db/pool.ts';
import type { Egress } from '../egress/egress.ts';
import { AccessTokens } from '../egress/google-tokens.ts';
import type { Keyring } from '../secrets/envelope.ts';
import { resolveIntegration } from './reads/resolve.ts';
import {
  awsKeysOf,
  type OutgoingRequest,
  type Substitution,
  secretValues,
  substitute,
} from './rules/substitution.ts';

export interface CredentialDependencies {
  pool: Pool;
  keyring: Keyring | undefined;
  egress: Pick<Egress, 'fetch'>;
}

/** Gives runs of programs the credentials of a project, as substitutes that only requests turn into secrets. */
export function createCredentials({ pool, keyring, egress }: CredentialDependencies) {
  const tokens = new AccessTokens(egress);
  return {
    /** Throws an AccessTokenError if there is no token. Mocked runs ask for none. */
    resolve: (projectId: number, id: number, { seed, isMocked }: { seed: string; isMocked: boolean }) =>
      resolveIntegration(pool, keyring, projectId, id, seed, isMocked ? undefined : tokens),
    substitute: (request: OutgoingRequest, substitutions: readonly object[]) =>
      substitute(request, substitutions as readonly Substitution[]),
    awsKeys: (substitutions: readonly object[], id: number, url: string) =>
      awsKeysOf(substitutions as readonly Substitution[], id, url),
    secretValues: (substitutions: readonly object[]) =>
      secretValues(substitutions as readonly Substitution[]),
  };
}
