import { EVENT_TIME } from '../../db/event-ids.ts';
import type { Queryable } from '../../db/pool.ts';
import type { StoredEvent } from '../rules/stored-event.ts';

/** The groups of an event with their properties, as JSON. */
export const GROUPS = `(select json_agg(json_build_object('type', t.group_type, 'index', t.group_type_index, 'key', k.key,
      'properties', coalesce(g.properties, '{}')) order by k.index)
   from (values (0, e.group_0), (1, e.group_1), (2, e.group_2), (3, e.group_3), (4, e.group_4)) as k (index, key)
   join group_types t on t.project_id = e.project_id and t.group_type_index = k.index
   left join groups g on g.project_id = e.project_id and g.group_type_index = k.index and g.group_key = k.key
   where k.key is not null)`;

const COLUMNS = `e.uuid, e.event, e.distinct_id, e.properties::text as properties, e.timestamp, e.created_at,
  e.elements_chain,  e.person_id, e.person_mode, e.person_properties::text as person_properties, ${GROUPS} as groups`;

export async function findStoredEvent(
  queryable: Queryable,
  projectId: number,
  uuid: string,
): Promise<StoredEvent | undefined> {
  const { rows } = await queryable.query(
    `select ${COLUMNS} from events e where e.project_id = $1 and e.timestamp = (select ${EVENT_TIME}) and e.uuid = $2`,
    [projectId, uuid],
  );
  return rows[0];
}

/** Finds an event by its position. */
export async function findEventAt(
  queryable: Queryable,
  projectId: number,
  { timestamp, uuid }: Pick<StoredEvent, 'timestamp' | 'uuid'>,
): Promise<StoredEvent | undefined> {
  const { rows } = await queryable.query(
    `select ${COLUMNS} from events e where e.project_id = $1 and e.timestamp = $2 and e.uuid = $3`,
    [projectId, timestamp, uuid],
  );
  return rows[0];
}

/** The largest event that functions take, in characters of its properties and those of its person. */
export const LARGEST_SEEN = 4_000_000;
/** How much is read at once of the events of a project. */
const MOST_AT_ONCE = 2 * LARGEST_SEEN;

/** An event that was found. Its properties are empty if it is too large, or if much was read of its project already. */
export type FoundEvent = StoredEvent & { project_id: number; unread: 'large' | 'later' | null };

/** Finds events by their positions. Those that are gone are left out. Their groups are not read. */
export async function findEventsAt(queryable: Queryable, keys: readonly EventKey[]): Promise<FoundEvent[]> {
  if (keys.length === 0) return [];
  const different = [...new Map(keys.map((one) => [`${one.projectId}:${one.uuid}`, one])).values()];
  const { rows } = await queryable.query({
    name: 'find-events-at',
    text: `select e.project_id, e.uuid, e.event, e.distinct_id, e.timestamp, e.created_at, e.elements_chain, e.person_id,
       e.person_mode, null as groups, r.unread,
       case when r.unread is null then e.properties::text else '' end as properties,
       case when r.unread is null then e.person_properties::text else '' end as person_properties
     from (
       select sized.*, sum(case when size <= ${LARGEST_SEEN} then size else 0 end)
         over (partition by project_id order by place) as so_far
       from (
         select e.*, k.place, length(e.properties::text) + length(e.person_properties::text) as size
         from unnest($1::int[], $2::uuid[], $3::timestamptz[]) with ordinality as k (project_id, uuid, timestamp, place)
         join lateral (select * from events i where i.project_id = k.project_id and i.timestamp = k.timestamp
           and i.uuid = k.uuid limit 1) e on true) sized) e
     cross join lateral (select case when size > ${LARGEST_SEEN} then 'large' when so_far > ${MOST_AT_ONCE} then 'later' end
       as unread) r`,
    values: [
      different.map((one) => one.projectId),
      different.map((one) => one.uuid),
      different.map((one) => one.timestamp),
    ],
  });
  return rows;
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

/** Which events are scanned, and which of them are wanted. */
export interface EventRange {
  after: string;
  before: string;
  /** The names of the events that are wanted. Null: all. */
  names: readonly string[] | null;
}

/** An event of a scan. Null in `found`: it is not wanted, or too large. */
export interface RangeEvent {
  timestamp: string;
  uuid: string;
  isTooLarge: boolean;
  found: StoredEvent | null;
}

/** How large a page is in bytes. The first wanted event comes in any case. */
const PAGE_SIZE = 4 * 1024 * 1024;

/** Lists a page of the events of a time range, newest first, before a position. Empty: there are no more. */
export async function eventsWithin(
  queryable: Queryable,
  projectId: number,
  { after, before, names }: EventRange,
  position: { timestamp: string; uuid: string } | null,
  limit: number,
): Promise<RangeEvent[]> {
  const { rows } = await queryable.query(
    `select e.timestamp as at, e.uuid as id, e.size > ${LARGEST} as is_too_large, e.size <= ${LARGEST} as is_shown, shown.*
     from (
       select sized.*, sum(case when size <= ${LARGEST} then size else 0 end) over (order by number) as bytes
       from (
         select e.*, row_number() over (order by e.timestamp desc, e.uuid desc) as number,
           case when $4::text[] is null or e.event = any($4)
             then octet_length(e.properties::text) + octet_length(e.person_properties::text) end as size
         from events e
         where e.project_id = $1 and e.timestamp >= $2 and e.timestamp < $3
           and ($5::timestamptz is null or (e.timestamp, e.uuid) < ($5, $6::uuid))
         order by e.timestamp desc, e.uuid desc limit $7) sized) e
     left join lateral (select ${COLUMNS}) shown on e.size <= ${LARGEST}
     where e.bytes <= ${PAGE_SIZE} or e.number = 1
     order by e.number`,
    [projectId, after, before, names, position?.timestamp ?? null, position?.uuid ?? null, limit],
  );
  return rows.map(({ at, id, is_too_large, is_shown, ...event }) => ({
    timestamp: at,
    uuid: id,
    isTooLarge: is_too_large === true,
    found: is_shown ? event : null,
  }));
}

/** What is read with events of some projects beside the events: what others do not ask for is left out. */
export interface Beside {
  /** Projects whose functions look at groups. */
  groupsOf: readonly number[];
  /** Projects whose filters name static cohorts, and these cohorts. */
  listedOf: { projects: readonly number[]; cohorts: readonly number[] };
}

const idList = (ids: readonly number[]) => ids.map(Number).join(',');

/** The static cohorts that list the person of an event, as a text of their ids. */
const listedIn = (
  cohorts: readonly number[],
) => `(select string_agg(c.cohort_id::text, ',') from cohort_people c
  where c.project_id = e.project_id and c.person_id = e.person_id and c.cohort_id = any('{${idList(cohorts)}}'))`;

/** The columns of the rows that functions/dispatch/event-rows.ts reads. */
const binaryColumns = ({ groupsOf, listedOf }: Beside) =>
  `e.xmin, e.project_id, e.event, e.uuid, e.timestamp, e.created_at, e.inserted_at, e.distinct_id, e.properties,
   e.elements_chain, e.person_id, e.person_mode, e.person_properties, ${
     groupsOf.length === 0
       ? 'null::json'
       : `case when e.project_id in (${idList(groupsOf)}) then ${GROUPS} end`
   } as groups${
     listedOf.cohorts.length === 0
       ? ''
       : `, case when e.project_id in (${idList(listedOf.projects)}) then ${listedIn(listedOf.cohorts)} end as listed_in`
   }`;

const copied = (select: string) => `copy (${select}) to stdout (format binary)`;

/** Where the events of some transactions lie. */
export interface EventPlace {
  partition: string;
  fromPage: number;
  toPage: number;
  xids: readonly number[];
  projects: readonly number[];
}

/** Reads events by their place, as binary rows. Those that lie elsewhere are missing. */
export function eventsInPlaceSql(place: EventPlace, beside: Beside): string {
  const { partition, fromPage, toPage, xids, projects } = place;
  if (!/^events_\w+$/.test(partition)) throw new TypeError(`${partition} is no partition of events`);
  return copied(`select ${binaryColumns(beside)} from ${partition} e
    where e.ctid >= '(${Number(fromPage)},0)' and e.ctid < '(${Number(toPage)},0)'
      and e.xmin = any('{${xids.map(Number).join(',')}}'::xid[])
      and e.project_id = any('{${projects.map(Number).join(',')}}') and not e.historical`);
}

/** The key of an event as text. */
export interface EventKey {
  projectId: number;
  uuid: string;
  timestamp: string;
}

const UUID = /^[0-9a-f-]{36}$/;
const INSTANT = /^[0-9T:.Z -]+(BC)?$/;

/** Reads events by their keys, as binary rows. */
export function eventsByKeySql(keys: readonly EventKey[], beside: Beside): string {
  if (keys.some(({ uuid, timestamp }) => !UUID.test(uuid) || !INSTANT.test(timestamp))) {
    throw new TypeError('the key of an event is not valid');
  }
  const list = (values: readonly (string | number)[]) => `'{${values.join(',')}}'`;
  return copied(`select ${binaryColumns(beside)}
    from unnest(${list(keys.map((one) => Number(one.projectId)))}::int[], ${list(keys.map((one) => one.uuid))}::uuid[],
      ${list(keys.map((one) => `"${one.timestamp}"`))}::timestamptz[]) as k (project_id, uuid, timestamp)
    join lateral (select * from (select xmin, * from events) i
      where i.project_id = k.project_id and i.timestamp = k.timestamp and i.uuid = k.uuid limit 1) e on true`);
}
