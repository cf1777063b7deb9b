import { pastVersions } from '../../db/past-versions.ts';
import type { Queryable } from '../../db/pool.ts';
import { FLAG_VERSIONS } from './forgetting.ts';

export const { at: flagsAt, forgottenAt: flagsForgottenAt } = pastVersions(FLAG_VERSIONS, 'key');

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
