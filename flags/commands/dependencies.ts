import type { Pool, Transaction } from '../../db/pool.ts';
import type { Keyring } from '../../secrets/envelope.ts';

/** What the commands of flags work with. */
export interface FlagCommandDependencies {
  pool: Pool;
  /** Seals payloads. Undefined: there are no keys. */
  keyring: Keyring | undefined;
  /** What the flags of a project may be together. */
  limits: { flags: number; bytes: number };
  /** Finds which of these cohorts a project has, and keeps them from being deleted until the transaction ends. */
  knownCohorts(client: Transaction, projectId: number, ids: readonly number[]): Promise<number[]>;
}

/** What a change of a flag within a transaction works with. */
export type FlagChangeDependencies = Omit<FlagCommandDependencies, 'pool'>;

/** What a user sets about a flag. Fields that are left out keep their values, or get their defaults. */
export interface FlagInput {
  key?: string | undefined;
  name?: string | undefined;
  filters?: Record<string, unknown> | undefined;
  active?: boolean | undefined;
  archived?: boolean | undefined;
  deleted?: boolean | undefined;
  ensure_experience_continuity?: boolean | undefined;
  is_remote_configuration?: boolean | undefined;
  has_encrypted_payloads?: boolean | undefined;
  evaluation_runtime?: 'all' | 'client' | 'server' | undefined;
  bucketing_identifier?: 'distinct_id' | 'device_id' | undefined;
  evaluation_contexts?: string[] | undefined;
  tags?: string[] | undefined;
}
