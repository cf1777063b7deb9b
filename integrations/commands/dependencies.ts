import type { Pool } from '../../db/pool.ts';
import type { Keyring } from '../../secrets/envelope.ts';

/** What the commands of integrations need. */
export interface IntegrationCommandDependencies {
  pool: Pool;
  /** The keys for the secrets. Without it no integration can be stored. */
  keyring: Keyring | undefined;
}
