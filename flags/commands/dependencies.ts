import type { Pool, Queryable } from '../../db/pool.ts';

/** What the commands of flags work with. */
export interface FlagCommandDependencies {
  pool: Pool;
  /** Finds which of these cohorts a project has. */
  knownCohorts(queryable: Queryable, projectId: number, ids: readonly number[]): Promise<number[]>;
}

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
  evaluation_runtime?: 'all' | 'client' | 'server' | undefined;
  bucketing_identifier?: 'distinct_id' | 'device_id' | undefined;
  evaluation_contexts?: string[] | undefined;
  tags?: string[] | undefined;
}
