import type { Pool } from '../../db/pool.ts';

export interface StoredFlag {
  key: string;
  filters: unknown;
  active?: boolean;
  ensure_experience_continuity?: boolean;
  is_remote_configuration?: boolean;
  evaluation_runtime?: string;
  bucketing_identifier?: string;
  evaluation_contexts?: string[];
}

/** Stores a flag as it is, also one that the API would refuse. */
export async function storeFlag(pool: Pool, projectId: number, flag: StoredFlag): Promise<number> {
  const { rows } = await pool.query(
    `insert into feature_flags (project_id, key, filters, active, ensure_experience_continuity,
       is_remote_configuration, evaluation_runtime, bucketing_identifier, evaluation_contexts)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9) returning id`,
    [
      projectId,
      flag.key,
      typeof flag.filters === 'string' ? flag.filters : JSON.stringify(flag.filters),
      flag.active ?? true,
      flag.ensure_experience_continuity ?? false,
      flag.is_remote_configuration ?? false,
      flag.evaluation_runtime ?? 'all',
      flag.bucketing_identifier ?? 'distinct_id',
      flag.evaluation_contexts ?? [],
    ],
  );
  return rows[0].id;
}

export async function storeCohort(
  pool: Pool,
  projectId: number,
  cohort: { name: string; isStatic?: boolean; properties?: unknown },
): Promise<number> {
  const { rows } = await pool.query(
    'insert into cohorts (project_id, name, is_static, filters) values ($1, $2, $3, $4) returning id',
    [projectId, cohort.name, cohort.isStatic ?? false, JSON.stringify({ properties: cohort.properties })],
  );
  return rows[0].id;
}

/** A flag that is on for everybody. */
export const EVERYBODY = { groups: [{ properties: [], rollout_percentage: 100 }] };

/** A flag with one condition. */
export const where = (...properties: unknown[]) => ({
  groups: [{ properties, rollout_percentage: 100 }],
});
