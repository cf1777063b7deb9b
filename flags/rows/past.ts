import type { Queryable } from '../../db/pool.ts';

/** A version of a flag or a cohort, as it was at some time. */
export interface PastRow {
  id: number;
  version: number;
  changed_at: string;
  /** JSON. */
  document: string;
}

/** Reads what flags were at a time. Those that did not exist yet are left out. */
export async function flagsAt(
  queryable: Queryable,
  projectId: number,
  ids: readonly number[],
  at: string,
): Promise<PastRow[]> {
  const { rows } = await queryable.query(
    `select distinct on (flag_id) flag_id as id, version, changed_at, document::text as document
     from feature_flag_revisions where project_id = $1 and flag_id = any($2::int[]) and changed_at <= $3
     order by flag_id, version desc`,
    [projectId, ids, at],
  );
  return rows;
}

/** Of things whose first versions are no longer kept: since when their versions are known. */
export interface KnownSince {
  id: number;
  name: string;
  since: string;
}

/** Finds which of these flags had versions before a time that are no longer kept, and none that is. */
export async function flagsForgottenAt(
  queryable: Queryable,
  projectId: number,
  ids: readonly number[],
  at: string,
): Promise<KnownSince[]> {
  const { rows } = await queryable.query(
    `select * from (
       select distinct on (flag_id) flag_id as id, document ->> 'key' as name, changed_at as since, version
       from feature_flag_revisions where project_id = $1 and flag_id = any($2::int[]) order by flag_id, version) as first
     where version > 1 and since > $3 order by id`,
    [projectId, ids, at],
  );
  return rows.map(({ id, name, since }) => ({ id, name, since }));
}

/** A value that was set by hand and is still there. */
export interface PastOverride {
  flag_id: number;
  value: boolean | string;
}

/** Reads the values by hand for a distinct id that were set before a time and have not been changed since. */
export async function overridesAt(
  queryable: Queryable,
  projectId: number,
  distinctId: string,
  at: string,
): Promise<PastOverride[]> {
  const { rows } = await queryable.query(
    `select flag_id, value from feature_flag_overrides
     where project_id = $1 and distinct_id = $2 and created_at <= $3`,
    [projectId, distinctId, at],
  );
  return rows;
}

/** The person as an event shows them. */
export interface PastPerson {
  uuid: string;
  event: string;
  timestamp: string;
  person_id: string;
  /** JSON. */
  properties: string;
}

/** Finds the last event of a distinct id before a time, of those that had come in by then. */
export async function personAt(
  queryable: Queryable,
  projectId: number,
  distinctId: string,
  at: string,
): Promise<PastPerson | undefined> {
  const { rows } = await queryable.query(
    `select uuid, event, timestamp, person_id, person_properties::text as properties from events
     where project_id = $1 and distinct_id = $2 and timestamp <= $3 and created_at <= $3
     order by timestamp desc, uuid desc limit 1`,
    [projectId, distinctId, at],
  );
  return rows[0];
}
