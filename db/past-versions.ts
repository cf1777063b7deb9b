import type { Queryable } from './pool.ts';
import type { VersionTables } from './versions.ts';

/** A version of a thing, as it was at some time. */
export interface PastRow {
  id: number;
  version: number;
  changed_at: string;
  /** JSON. */
  document: string;
}

/** Of a thing whose first versions are no longer kept: since when its versions are known. */
export interface KnownSince {
  id: number;
  name: string;
  since: string;
}

/** Reads something of things of a project, about a time. */
export type ReadPast<Row> = (
  queryable: Queryable,
  projectId: number,
  ids: readonly number[],
  at: string,
) => Promise<Row[]>;

export interface PastVersions {
  /** What things were. Those that did not exist yet are left out. */
  at: ReadPast<PastRow>;
  /** Which things had versions before the time that are no longer kept, and none that is. */
  forgottenAt: ReadPast<KnownSince>;
}

/** Readers of what things were, whose versions have a `document` in which `named` is their name. */
export function pastVersions({ versions, thing, madeAt }: VersionTables, named: string): PastVersions {
  return {
    async at(queryable, projectId, ids, at) {
      const { rows } = await queryable.query(
        `select distinct on (${thing}) ${thing} as id, version, ${madeAt} as changed_at, document::text as document
         from ${versions} where project_id = $1 and ${thing} = any($2::int[]) and ${madeAt} <= $3
         order by ${thing}, version desc`,
        [projectId, ids, at],
      );
      return rows;
    },
    async forgottenAt(queryable, projectId, ids, at) {
      const { rows } = await queryable.query(
        `select * from (
           select distinct on (${thing}) ${thing} as id, document ->> $4 as name, ${madeAt} as since, version
           from ${versions} where project_id = $1 and ${thing} = any($2::int[]) order by ${thing}, version) as first
         where version > 1 and since > $3 order by id`,
        [projectId, ids, at, named],
      );
      return rows.map(({ id, name, since }) => ({ id, name, since }));
    },
  };
}
