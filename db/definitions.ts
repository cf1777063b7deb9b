import { containsPattern } from './like.ts';
import { type Pool, type Queryable, type Transaction, transaction } from './pool.ts';

export type DefinitionKind = 'event' | 'event_property' | 'person_property' | 'group_property';

/** So many names of each kind a project has. A name beyond them takes the place of one that nobody needs, or has none. */
export const MOST_DEFINITIONS: Readonly<Record<DefinitionKind, number>> = {
  event: 2_000,
  event_property: 10_000,
  person_property: 5_000,
  group_property: 5_000,
};
/** A name whose last sight was noted less long ago is left as it is. */
const HOUR_MS = 3_600_000;
/** A name that was seen in several hours keeps its place for so long. */
const KEPT = '30 days';

/** A name that somebody has seen now. */
export interface NewName {
  kind: DefinitionKind;
  /** Empty: the name is none of a group. */
  groupType: string;
  name: string;
  type: string | null;
}

/** What became of a name. */
export interface Remembered {
  /** Whether the table has it. */
  isKept: boolean;
  /** Whether there was no place for it. */
  isFull: boolean;
  /** Whether the table knows its type. */
  isTyped: boolean;
  /** In how many milliseconds the table wants to hear of it again. */
  dueInMs: number;
}

interface Compared {
  place: number;
  /** Null: there is no such type of groups, or not yet. */
  index: number | null;
  is_known: boolean;
  is_typed: boolean;
  due_in: number;
}

/** The given names with what the table knows of them. $1 is the project, and $2 the names. */
const GIVEN = `
  given as materialized (
    select (place - 1)::int as place, n.kind, n.name, n.type,
      case when n.kind = 'group_property' then g.group_type_index else -1 end as index
    from rows from (jsonb_to_recordset($2::jsonb) as (kind text, "groupType" text, name text, type text))
      with ordinality as n (kind, group_type, name, type, place)
    left join group_types g on g.project_id = $1 and g.group_type = n.group_type)`;
const SAME = `d.project_id = $1 and d.kind = given.kind collate "C" and d.group_type_index = given.index
  and d.name = given.name collate "C"`;
const IS_DUE = `d.last_seen_at <= now() - interval '1 hour'`;

/**
 * Notes that names were seen: adds those that are new, and renews the others once an hour. Returns what became of each.
 * Undefined: the project is gone.
 */
export async function rememberNames(
  pool: Pool,
  projectId: number,
  names: readonly NewName[],
): Promise<Remembered[] | undefined> {
  return transaction(pool, async (client) => {
    // One process at a time counts and adds, and none after the project was deleted.
    const { rowCount } = await client.query({
      name: 'lock-project-of-names',
      text: 'select from projects where id = $1 for no key update',
      values: [projectId],
    });
    if (rowCount === 0) return undefined;
    const values = [projectId, JSON.stringify(names)];
    const { rows } = await client.query<Compared>({
      name: 'compare-names',
      text: `with ${GIVEN}
       select given.place, given.index, d.name is not null as is_known,
         d.property_type is not null or given.type is not null as is_typed,
         coalesce(extract(epoch from d.last_seen_at - now()) * 1000 + ${HOUR_MS}, ${HOUR_MS})::float8 as due_in
       from given left join definitions d on ${SAME} order by given.place`,
      values,
    });
    await client.query({
      name: 'renew-names',
      text: `with ${GIVEN}
       update definitions d set
         last_seen_at = case when ${IS_DUE} then now() else d.last_seen_at end,
         property_type = coalesce(d.property_type, given.type)
       from given where ${SAME} and (${IS_DUE} or d.property_type is null and given.type is not null)`,
      values,
    });
    const added = await addNames(
      client,
      projectId,
      rows
        .filter((row) => !row.is_known && row.index !== null)
        .map(({ place, index }) => ({ ...(names[place] as NewName), index: index as number, place })),
    );
    return rows.map(({ place, index, is_known, is_typed, due_in }) => {
      const isKept = is_known || added.has(place);
      return {
        ...{ isKept, isFull: !isKept && index !== null, isTyped: is_typed },
        dueInMs: due_in > 0 ? due_in : HOUR_MS,
      };
    });
  });
}

type Placed = NewName & { index: number; place: number };

/** Adds names as far as there is room. Returns the places of those that were added. */
async function addNames(
  client: Transaction,
  projectId: number,
  names: readonly Placed[],
): Promise<Set<number>> {
  const added: Placed[] = [];
  for (const kind of Object.keys(MOST_DEFINITIONS) as DefinitionKind[]) {
    const wanted = names.filter((one) => one.kind === kind);
    if (wanted.length > 0)
      added.push(...wanted.slice(0, await roomFor(client, projectId, kind, wanted.length)));
  }
  if (added.length === 0) return new Set();
  await client.query({
    name: 'add-names',
    text: `insert into definitions (project_id, kind, group_type_index, name, property_type)
     select $1, kind, index, name, type
     from jsonb_to_recordset($2::jsonb) as n (kind text, index smallint, name text, type text)
     on conflict do nothing`,
    values: [projectId, JSON.stringify(added)],
  });
  return new Set(added.map((one) => one.place));
}

/**
 * Returns how many of the wanted names have a place. When all are taken, names that were seen within a single hour, and not in the
 * last one, give theirs up first: those of a flood are such. The others do after a month without a sight.
 */
async function roomFor(
  client: Transaction,
  projectId: number,
  kind: DefinitionKind,
  wanted: number,
): Promise<number> {
  const { rows } = await client.query({
    name: 'count-names',
    text: 'select count(*)::int as count from definitions where project_id = $1 and kind = $2',
    values: [projectId, kind],
  });
  const room = MOST_DEFINITIONS[kind] - rows[0].count;
  if (room >= wanted) return wanted;
  const { rowCount } = await client.query(
    `delete from definitions where project_id = $1 and kind = $2 and (group_type_index, name) in (
       select group_type_index, name from definitions d
       where project_id = $1 and kind = $2 and ${IS_DUE}
         and (last_seen_at = created_at or last_seen_at <= now() - interval '${KEPT}')
       order by last_seen_at > created_at, last_seen_at, name limit $3)`,
    [projectId, kind, wanted - Math.max(0, room)],
  );
  return Math.max(0, room + (rowCount ?? 0));
}

export interface DefinitionRow {
  id: string;
  kind: DefinitionKind;
  /** -1: the name is none of a group. */
  group_type_index: number;
  name: string;
  property_type: 'String' | 'Numeric' | 'Boolean' | 'DateTime' | null;
  created_at: string;
  last_seen_at: string;
}

const COLUMNS = 'id, kind, group_type_index, name, property_type, created_at, last_seen_at';

export interface DefinitionQuery {
  kind: DefinitionKind;
  groupTypeIndex?: number | undefined;
  /** Each of these has to be in the name, in any case. */
  terms?: readonly string[] | undefined;
  names?: readonly string[] | undefined;
  excluded?: readonly string[] | undefined;
  /** Whether the values are numbers. */
  isNumerical?: boolean | undefined;
  /** Whether names that begin with `$` are left out. */
  isOwn?: boolean | undefined;
  /** Whether the name begins so. */
  prefix?: { text: string; has: boolean } | undefined;
  order: 'name' | '-name' | 'last_seen_at' | '-last_seen_at';
  limit: number;
  offset: number;
}

const ORDERS: Readonly<Record<DefinitionQuery['order'], string>> = {
  name: 'name, group_type_index',
  '-name': 'name desc, group_type_index',
  last_seen_at: 'last_seen_at, name, group_type_index',
  '-last_seen_at': 'last_seen_at desc, name, group_type_index',
};

/** Lists names of a project. There are so few of them that each list may read them all. */
export async function listDefinitions(
  queryable: Queryable,
  projectId: number,
  query: DefinitionQuery,
): Promise<{ count: number; rows: DefinitionRow[] }> {
  const values: unknown[] = [projectId, query.kind];
  const given = (value: unknown) => `$${values.push(value)}`;
  const conditions = ['project_id = $1', 'kind = $2'];
  const { groupTypeIndex, terms, names, excluded, isNumerical, isOwn, prefix } = query;
  if (groupTypeIndex !== undefined) conditions.push(`group_type_index = ${given(groupTypeIndex)}`);
  if (terms?.length) {
    // Each name is made small once, and not for each term.
    const patterns = given([...new Set(terms)].map(containsPattern));
    conditions.push(
      `lower(name) like all (array(select lower(one collate "C") from unnest(${patterns}::text[]) as one))`,
    );
  }
  if (names) conditions.push(`name = any (${given(names)}::text[])`);
  if (excluded?.length) conditions.push(`name <> all (${given(excluded)}::text[])`);
  if (isNumerical !== undefined) {
    conditions.push(`(property_type is not distinct from 'Numeric') = ${given(isNumerical)}`);
  }
  if (isOwn) conditions.push(`not starts_with(name, '$')`);
  if (prefix) conditions.push(`starts_with(name, ${given(prefix.text)}) = ${given(prefix.has)}`);
  const where = conditions.join(' and ');
  const counted = await queryable.query(
    `select count(*)::int as count from definitions where ${where}`,
    values,
  );
  const { rows } = await queryable.query(
    `select ${COLUMNS} from definitions where ${where}
     order by ${ORDERS[query.order]} limit ${given(query.limit)} offset ${given(query.offset)}`,
    values,
  );
  return { count: counted.rows[0].count, rows };
}

export async function findDefinition(
  queryable: Queryable,
  projectId: number,
  id: string,
): Promise<DefinitionRow | undefined> {
  const { rows } = await queryable.query(
    `select ${COLUMNS} from definitions where project_id = $1 and id = $2`,
    [projectId, id],
  );
  return rows[0];
}
