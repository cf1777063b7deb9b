// The versions of things that people change, and for how long they are kept.
import type { Queryable } from './pool.ts';

/** Where versions of things are stored. The names come from our code, never from a request. */
export interface VersionTables {
  /** The table of the things: it has `project_id`, `id` and `version`. */
  things: string;
  /** The table of their versions: it has `project_id` and `version`. */
  versions: string;
  /** The columns of a version that say which thing it is of, when it was made, and what the thing was from then on. */
  thing: string;
  thingType: 'integer' | 'uuid';
  madeAt: string;
  content: readonly string[];
  /** Whether a thing `t` is deleted. */
  isDeleted: string;
}

/** For how long versions are kept. The version that a thing has now is kept anyway, unless the thing is deleted. */
export interface VersionBounds {
  /** So many versions of each thing are kept, however old they are. Further ones are kept for `days`. */
  newest: number;
  days: number;
  /** So many bytes of versions are kept in a project. Beyond them, the oldest ones go first, whatever else is said. */
  bytes: number;
}

export interface OldVersion {
  thing: number | string;
  version: number;
  /** What it takes on the disk. */
  bytes: number;
  /** It is the last version of a thing that is deleted. The thing goes with it. */
  isLast: boolean;
}

/** What a version takes beside its content: the row, and its place in the indexes. */
const ROW_BYTES = 200;

/** So long after a project made a version, it is looked at every minute. All others are looked at once an hour. */
const RECENT = '10 minutes';

/** Names the projects whose versions are to be looked at now. In the course of an hour, these are all. */
export async function projectsWithVersions(
  queryable: Queryable,
  { versions, madeAt }: VersionTables,
  now: Date,
): Promise<number[]> {
  const { rows } = await queryable.query(
    `select project_id from ${versions} where ${madeAt} > $1::timestamptz - $2::interval group by 1
     union select id from projects where id % 60 = $3 order by 1`,
    [now, RECENT, now.getUTCMinutes()],
  );
  return rows.map((row) => row.project_id);
}

/** Lists versions of a project that are kept no longer, the oldest ones first. */
export async function oldVersions(
  queryable: Queryable,
  { things, versions, thing, madeAt, content, isDeleted }: VersionTables,
  projectId: number,
  { newest, days, bytes, limit }: VersionBounds & { limit: number },
): Promise<OldVersion[]> {
  const size = content.map((column) => `coalesce(pg_column_size(v.${column}), 0)`).join(' + ');
  const { rows } = await queryable.query(
    `with known as (
       select v.${thing} as thing, v.version, v.${madeAt} as made_at, ${size} + ${ROW_BYTES} as bytes,
         coalesce(v.version = t.version, false) as is_current, t.id is null or ${isDeleted} as is_deleted
       from ${versions} v left join ${things} t on t.project_id = v.project_id and t.id = v.${thing}
       where v.project_id = $1),
     ranked as (
       select *, row_number() over (partition by thing order by version desc) as number,
         sum(bytes) over (order by made_at desc, thing desc, version desc rows unbounded preceding) as newer_bytes
       from known)
     select thing, version, bytes, is_current as "isLast" from ranked
     where (is_deleted or not is_current) and (newer_bytes > $2
       or made_at < clock_timestamp() - make_interval(days => $3) and (is_deleted or number > $4))
     order by made_at, thing, version limit $5`,
    [projectId, bytes, days, newest, limit],
  );
  return rows;
}

/** Deletes versions of a project. One that a thing has, which came back meanwhile, stays. */
export async function deleteVersions(
  queryable: Queryable,
  { things, versions, thing, thingType, isDeleted }: VersionTables,
  projectId: number,
  old: readonly OldVersion[],
): Promise<number> {
  const { rowCount } = await queryable.query(
    `delete from ${versions} v using json_to_recordset($2) as o (thing ${thingType}, version integer)
     where v.project_id = $1 and v.${thing} = o.thing and v.version = o.version and not exists (
       select from ${things} t where t.project_id = v.project_id and t.id = v.${thing} and t.version = v.version
         and not (${isDeleted}))`,
    [projectId, JSON.stringify(old)],
  );
  return rowCount ?? 0;
}
