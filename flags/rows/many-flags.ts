// Many flags of a project in one statement each. Call them under the lock of the flags.
import type { Queryable } from '../../db/pool.ts';
import { FLAG_COLUMNS, type FlagRow } from './flags.ts';

/** Marks flags as deleted, and returns them. */
export async function markDeleted(
  queryable: Queryable,
  projectId: number,
  ids: readonly number[],
  userId: number | null,
): Promise<FlagRow[]> {
  const { rows } = await queryable.query(
    `with f as (
       update feature_flags set deleted = true, version = version + 1, last_modified_by = $3,
         updated_at = clock_timestamp()
       where project_id = $1 and id = any($2::int[]) and not deleted returning *)
     select ${FLAG_COLUMNS} from f`,
    [projectId, ids, userId],
  );
  return rows;
}

export interface TaggedFlag {
  id: number;
  key: string;
  tags: string[];
}

/** Finds the tags of flags that are not deleted. */
export async function findTags(
  queryable: Queryable,
  projectId: number,
  ids: readonly number[],
): Promise<Map<number, TaggedFlag>> {
  const { rows } = await queryable.query<TaggedFlag>(
    `select id, key, tags from feature_flags where project_id = $1 and id = any($2::int[]) and not deleted`,
    [projectId, ids],
  );
  return new Map(rows.map((row) => [row.id, row]));
}

/** Gives flags their tags. */
export async function putTags(
  queryable: Queryable,
  projectId: number,
  tagged: readonly Pick<TaggedFlag, 'id' | 'tags'>[],
  userId: number | null,
): Promise<void> {
  await queryable.query(
    `update feature_flags f set tags = n.tags, version = f.version + 1, last_modified_by = $3,
       updated_at = clock_timestamp()
     from json_to_recordset($2) as n (id integer, tags text[]) where f.project_id = $1 and f.id = n.id`,
    [projectId, JSON.stringify(tagged), userId],
  );
}
