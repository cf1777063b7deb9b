import type { Queryable } from '../../db/pool.ts';

export const DEFINITIONS_CHANNEL = 'sluice_flags';

/** What of a flag decides its value. */
export interface FlagDefinitionRow {
  id: number;
  stamp: string;
  key: string;
  name: string;
  version: number;
  /** JSON, spelled as it was stored. */
  filters: string;
  active: boolean;
  ensure_experience_continuity: boolean;
  is_remote_configuration: boolean;
  has_encrypted_payloads: boolean;
  evaluation_runtime: 'all' | 'client' | 'server';
  bucketing_identifier: 'distinct_id' | 'device_id';
  evaluation_contexts: string[];
  tags: string[];
}

/** What a project says about all of its flags. */
export interface FlagProjectRow {
  organization_id: string;
  timezone: string;
  /** The quota of the organization. Null: that of the setting. */
  flag_requests_per_month: number | null;
  group_types: { group_type: string; group_type_index: number }[];
  overrides: { flag_id: number; distinct_id: string; value: boolean | string }[];
}

export interface DefinitionChanges {
  /** Undefined: there is no such project. */
  project: FlagProjectRow | undefined;
  /** All flags that are not deleted. */
  stamps: { id: number; stamp: string }[];
  /** Those whose stamp was not known. */
  changed: FlagDefinitionRow[];
}

/** Reads the flags of a project. Those whose stamps are known are only named. */
export async function readDefinitions(
  queryable: Queryable,
  projectId: number,
  known: readonly { id: number; stamp: string }[],
): Promise<DefinitionChanges> {
  const { rows } = await queryable.query(
    `select p.organization_id, p.timezone, (select o.flag_requests_per_month::float8 from organizations o
         where o.id = p.organization_id) as flag_requests_per_month,
       coalesce((select json_agg(json_build_object('group_type', g.group_type, 'group_type_index', g.group_type_index))
         from group_types g where g.project_id = p.id), '[]') as group_types,
       coalesce((select json_agg(json_build_object('flag_id', o.flag_id, 'distinct_id', o.distinct_id, 'value', o.value))
         from feature_flag_overrides o where o.project_id = p.id), '[]') as overrides,
       coalesce((select array_agg(f.id order by f.id) from feature_flags f
         where f.project_id = p.id and not f.deleted), '{}') as ids,
       coalesce((select array_agg(f.stamp::text order by f.id) from feature_flags f
         where f.project_id = p.id and not f.deleted), '{}') as stamps,
       coalesce((select json_agg(json_build_object('id', f.id, 'stamp', f.stamp::text, 'key', f.key, 'name', f.name,
           'version', f.version, 'filters', f.filters::text, 'active', f.active,
           'ensure_experience_continuity', f.ensure_experience_continuity,
           'is_remote_configuration', f.is_remote_configuration,
           'has_encrypted_payloads', f.has_encrypted_payloads, 'evaluation_runtime', f.evaluation_runtime,
           'bucketing_identifier', f.bucketing_identifier, 'evaluation_contexts', f.evaluation_contexts,
           'tags', f.tags) order by f.id)
         from feature_flags f left join unnest($2::int[], $3::bigint[]) as k (id, stamp) on k.id = f.id
         where f.project_id = p.id and not f.deleted and k.stamp is distinct from f.stamp), '[]') as changed
     from projects p where p.id = $1`,
    [projectId, known.map((one) => one.id), known.map((one) => one.stamp)],
  );
  const row = rows[0];
  if (!row) return { project: undefined, stamps: [], changed: [] };
  const { ids, stamps, changed, ...project } = row;
  return {
    project,
    stamps: ids.map((id: number, index: number) => ({ id, stamp: stamps[index] })),
    changed,
  };
}

/** Names the flags of a project that ask about a cohort. */
export async function flagsAsking(
  queryable: Queryable,
  projectId: number,
  cohortId: number,
): Promise<{ id: number; key: string; name: string; active: boolean }[]> {
  const { rows } = await queryable.query(
    `select id, key, name, active from feature_flags
     where project_id = $1 and not deleted and asks_cohorts @> array[$2::int] order by key`,
    [projectId, cohortId],
  );
  return rows;
}
