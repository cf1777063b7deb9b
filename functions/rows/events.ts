import type { Queryable } from '../../db/pool.ts';
import type { StoredEvent } from '../rules/stored-event.ts';

const COLUMNS = `e.uuid, e.event, e.distinct_id, e.properties::text as properties, e.timestamp, e.created_at,
  e.elements_chain,  e.person_id, e.person_mode, e.person_properties::text as person_properties,
  (select json_agg(json_build_object('type', t.group_type, 'index', t.group_type_index, 'key', k.key,
      'properties', coalesce(g.properties, '{}')) order by k.index)
   from (values (0, e.group_0), (1, e.group_1), (2, e.group_2), (3, e.group_3), (4, e.group_4)) as k (index, key)
   join group_types t on t.project_id = e.project_id and t.group_type_index = k.index
   left join groups g on g.project_id = e.project_id and g.group_type_index = k.index and g.group_key = k.key
   where k.key is not null) as groups`;

export async function findStoredEvent(
  queryable: Queryable,
  projectId: number,
  uuid: string,
): Promise<StoredEvent | undefined> {
  const { rows } = await queryable.query(
    `select ${COLUMNS} from event_ids i
     join events e on e.project_id = i.project_id and e.timestamp = i.timestamp and e.uuid = i.uuid
     where i.project_id = $1 and i.uuid = $2`,
    [projectId, uuid],
  );
  return rows[0];
}

/** Events whose row is larger are left out of searches for a sample. */
const LARGEST = 1024 * 1024;

/** Lists events, newest first, before a position. */
export async function newestEvents(
  queryable: Queryable,
  projectId: number,
  before: { timestamp: string; uuid: string } | null,
  limit: number,
): Promise<StoredEvent[]> {
  const { rows } = await queryable.query(
    `select ${COLUMNS} from events e where e.project_id = $1
       and ($2::timestamptz is null or (e.timestamp, e.uuid) < ($2, $3::uuid))
       and octet_length(e.properties::text) + octet_length(e.person_properties::text) <= ${LARGEST}
     order by e.timestamp desc, e.uuid desc limit $4`,
    [projectId, before?.timestamp ?? null, before?.uuid ?? null, limit],
  );
  return rows;
}
