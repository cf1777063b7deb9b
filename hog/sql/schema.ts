// The tables and columns of HogQL and their places in Postgres. All names of both are here.
import { type Parameters, type Sql, sql } from './sql.ts';
import type { Type } from './types.ts';

/** A column. `of` returns its SQL for a table with a given alias. */
export interface Column {
  kind: 'column';
  type: Type;
  /** `via` is the alias of the related table that the column needs beside its own. */
  of: (table: Sql, via: Sql) => Sql;
  /** The field of the same table that joins `via`. */
  via?: string;
  /** True for a JSON document that is stored as text (`json`), not in binary form (`jsonb`). */
  jsonText?: boolean;
  /** True for a text that can be as large as an event. */
  large?: boolean;
  /** The stored document that the column is a part of, and its key there. */
  within?: { root: (table: Sql) => Sql; key: Sql };
  /** True if the column is never NULL. */
  certain?: boolean;
  /**
   * A condition that is true for each row whose column equals the value, and that an index can serve. `ids` is the table of distinct
   * ids, with the project's condition.
   */
  narrowed?: (table: Sql, value: Sql, ids: Sql) => Sql;
  /** True if `*` leaves the column out. */
  hidden?: boolean;
}

/** A related table. It is joined only if the query uses one of its fields. Each row has at most one related row. */
export interface Lazy {
  kind: 'join';
  table: string;
  /** `via` is the alias of the related table that the condition needs beside both. */
  on: (from: Sql, to: Sql, via: Sql) => Sql;
  /** The field of the same table that joins `via`. */
  via?: string;
  /** The fields that are stored in the row itself and need no join. */
  own?: Readonly<Record<string, Column>>;
}

/** Fields with a common prefix, such as `poe.properties`. */
export interface Fields {
  kind: 'fields';
  fields: Readonly<Record<string, Field>>;
}

export type Field = Column | Lazy | Fields;

/** Prints the rows of a table that depend on values, such as the rows that changed within an interval. */
export type Rows = (project: Sql, parameters: Pick<Parameters, 'add'>) => Sql;

export interface Table {
  name: string;
  /** The table in Postgres, or its rows. Every use is printed with the project's condition. */
  from: Sql | Rows;
  project: Sql;
  fields: Readonly<Record<string, Field>>;
  /** How many places that read events it takes to read the table. Without it, none. */
  events?: number;
  /** How the rows lie. Those of some times can then be found without a look at all. */
  stored?: { /** The field with the time of a row. */ time: string /** When it was stored. */; at: Sql };
}

export interface Schema {
  tables: Readonly<Record<string, Table>>;
  /** The members of cohorts, for IN COHORT. Undefined: there are no cohorts where the query runs. */
  cohorts?: { from: Sql; project: Sql; cohort: Sql; person: Sql };
}

type Options = Omit<Column, 'kind' | 'type' | 'of'>;

const column = (type: Type, of: Column['of'], options: Options = {}): Column => ({
  kind: 'column',
  type,
  of,
  ...options,
});

const certain: Options = { certain: true };
const hidden: Options = { hidden: true };

const GROUP_KEYS = [
  (table: Sql) => sql`${table}.group_0`,
  (table: Sql) => sql`${table}.group_1`,
  (table: Sql) => sql`${table}.group_2`,
  (table: Sql) => sql`${table}.group_3`,
  (table: Sql) => sql`${table}.group_4`,
];
const GROUP_INDEXES = [sql`0`, sql`1`, sql`2`, sql`3`, sql`4`];

function groupFields(): Record<string, Field> {
  const fields: Record<string, Field> = {};
  for (const [index, key] of GROUP_KEYS.entries()) {
    fields[`$group_${index}`] = column('string', key);
    const number = GROUP_INDEXES[index] as Sql;
    fields[`group_${index}`] = {
      kind: 'join',
      table: 'groups',
      on: (from, to) => sql`${to}.group_type_index = ${number} and ${to}.group_key = ${key(from)}`,
      own: { key: column('string', key) },
    };
  }
  return fields;
}

/**
 * Which person an event shows: `on event` is the person as it was when the event arrived, `current` the one to whom its
 * distinct_id belongs now. Persons can be merged, so these can be two.
 */
export type PersonMode = 'on event' | 'current';

/** The person to whom the distinct_id belongs now. If it belongs to none, the one of the event. */
const resolved = (t: Sql, pdi: Sql): Sql => sql`coalesce(${pdi}.person_id, ${t}.person_id)`;
const RESOLVED_ID = column('uuid', resolved, {
  via: 'pdi',
  // Indexes of events have the collation of the database, and distinct ids of persons have another one.
  narrowed: (t, id, ids) => sql`(${t}.person_id = ${id} or ${t}.distinct_id = any(array(
    select distinct_id collate "default" from ${ids} as d where person_id = ${id})))`,
});

const SNAPSHOT = {
  id: column('uuid', (t) => sql`${t}.person_id`),
  properties: column('json', (t) => sql`${t}.person_properties`, { jsonText: true }),
};

/**
 * Prints a property that few events have. It first searches the text for the name, which takes a third of the time of
 * parsing the document. Ingestion writes documents with JSON.stringify, which never escapes `$`, so the search finds the
 * name.
 */
const rare = (t: Sql, name: Sql): Sql =>
  sql`(case when strpos(${t}.properties::text, ${name}) > 0 then ${t}.properties -> ${name} end)`;

const documentOf = (t: Sql): Sql => sql`${t}.properties`;

const events = (persons: PersonMode): Table => ({
  name: 'events',
  from: sql`events`,
  project: sql`project_id`,
  events: 1,
  stored: { time: 'timestamp', at: sql`inserted_at` },
  fields: {
    uuid: column('uuid', (t) => sql`${t}.uuid`, certain),
    event: column('string', (t) => sql`${t}.event`, certain),
    properties: column('json', (t) => sql`${t}.properties`, { jsonText: true, certain: true }),
    timestamp: column('datetime', (t) => sql`${t}.timestamp`, certain),
    team_id: column('int', (t) => sql`${t}.project_id`, certain),
    distinct_id: column('string', (t) => sql`${t}.distinct_id`, certain),
    elements_chain: column('string', (t) => sql`${t}.elements_chain`, { ...certain, large: true }),
    created_at: column('datetime', (t) => sql`${t}.created_at`, certain),
    inserted_at: column('datetime', (t) => sql`${t}.inserted_at`, { certain: true, hidden: true }),
    _inserted_at: column('datetime', (t) => sql`${t}.inserted_at`, { certain: true, hidden: true }),
    person_id: persons === 'on event' ? SNAPSHOT.id : RESOLVED_ID,
    person_mode: column('string', (t) => sql`${t}.person_mode`, certain),
    person_properties: column('json', (t) => sql`${t}.person_properties`, { jsonText: true, hidden: true }),
    set: column('json', (t) => rare(t, sql`'$set'`), {
      jsonText: true,
      hidden: true,
      within: { root: documentOf, key: sql`'$set'` },
    }),
    set_once: column('json', (t) => rare(t, sql`'$set_once'`), {
      jsonText: true,
      hidden: true,
      within: { root: documentOf, key: sql`'$set_once'` },
    }),
    ip: column('string', (t) => sql`(${t}.properties ->> '$ip')`, {
      ...hidden,
      within: { root: documentOf, key: sql`'$ip'` },
    }),
    $session_id: column('string', (t) => sql`${t}.session_id`),
    $window_id: column('string', (t) => sql`${t}.window_id`),
    elements_chain_href: column('string', (t) => sql`hq.elements_href(${t}.elements_chain)`, hidden),
    elements_chain_texts: column(
      { array: 'string' },
      (t) => sql`hq.elements_values(${t}.elements_chain, 'text')`,
      hidden,
    ),
    elements_chain_ids: column(
      { array: 'string' },
      (t) => sql`hq.elements_values(${t}.elements_chain, 'attr_id')`,
      hidden,
    ),
    elements_chain_elements: column(
      { array: 'string' },
      (t) => sql`hq.elements_tags(${t}.elements_chain)`,
      hidden,
    ),
    ...groupFields(),
    person:
      persons === 'on event'
        ? {
            kind: 'join',
            table: 'persons',
            on: (from, to) => sql`${to}.id = ${from}.person_id`,
            own: SNAPSHOT,
          }
        : {
            kind: 'join',
            table: 'persons',
            on: (from, to, via) => sql`${to}.id = ${resolved(from, via)}`,
            via: 'pdi',
            own: { id: RESOLVED_ID },
          },
    poe: { kind: 'fields', fields: SNAPSHOT },
    pdi: {
      kind: 'join',
      table: 'person_distinct_ids',
      on: (from, to) => sql`${to}.distinct_id = ${from}.distinct_id`,
    },
    session: {
      kind: 'join',
      table: 'sessions',
      on: (from, to) => sql`${to}.session_id = ${from}.session_id`,
      own: { id: column('string', (t) => sql`${t}.session_id`) },
    },
  },
});

const persons: Table = {
  name: 'persons',
  from: sql`persons`,
  project: sql`project_id`,
  fields: {
    id: column('uuid', (t) => sql`${t}.id`, certain),
    created_at: column('datetime', (t) => sql`${t}.created_at`, certain),
    team_id: column('int', (t) => sql`${t}.project_id`, certain),
    properties: column('json', (t) => sql`${t}.properties`, certain),
    is_identified: column('bool', (t) => sql`${t}.is_identified`, certain),
  },
};

const personDistinctIds: Table = {
  name: 'person_distinct_ids',
  from: sql`person_distinct_ids`,
  project: sql`project_id`,
  fields: {
    distinct_id: column('string', (t) => sql`${t}.distinct_id`, certain),
    person_id: column('uuid', (t) => sql`${t}.person_id`, certain),
    team_id: column('int', (t) => sql`${t}.project_id`, certain),
    person: { kind: 'join', table: 'persons', on: (from, to) => sql`${to}.id = ${from}.person_id` },
  },
};

const groups: Table = {
  name: 'groups',
  from: sql`groups`,
  project: sql`project_id`,
  fields: {
    index: column('int', (t) => sql`${t}.group_type_index`, certain),
    key: column('string', (t) => sql`${t}.group_key`, certain),
    team_id: column('int', (t) => sql`${t}.project_id`, certain),
    created_at: column('datetime', (t) => sql`${t}.created_at`, certain),
    updated_at: column('datetime', (t) => sql`${t}.updated_at`, certain),
    properties: column('json', (t) => sql`${t}.properties`, certain),
  },
};

const CLICK_IDS = [
  ['$entry_gclid', sql`entry_gclid`],
  ['$entry_gad_source', sql`entry_gad_source`],
  ['$entry_gclsrc', sql`entry_gclsrc`],
  ['$entry_dclid', sql`entry_dclid`],
  ['$entry_gbraid', sql`entry_gbraid`],
  ['$entry_wbraid', sql`entry_wbraid`],
  ['$entry_fbclid', sql`entry_fbclid`],
  ['$entry_msclkid', sql`entry_msclkid`],
  ['$entry_twclid', sql`entry_twclid`],
  ['$entry_li_fat_id', sql`entry_li_fat_id`],
  ['$entry_mc_cid', sql`entry_mc_cid`],
  ['$entry_igshid', sql`entry_igshid`],
  ['$entry_ttclid', sql`entry_ttclid`],
  ['$entry__kx', sql`entry__kx`],
  ['$entry_irclid', sql`entry_irclid`],
] as const;

/** The sessions, which are a view. Nothing about sessions is stored, see docs/sessions.md. */
const sessions: Table = {
  name: 'sessions',
  from: sql`sessions`,
  project: sql`project_id`,
  events: 4,
  fields: {
    id: column('string', (t) => sql`${t}.session_id`, certain),
    session_id: column('string', (t) => sql`${t}.session_id`, certain),
    session_id_v7: column('uuid', (t) => sql`${t}.session_id_v7`),
    team_id: column('int', (t) => sql`${t}.project_id`, certain),
    distinct_id: column('string', (t) => sql`${t}.distinct_id`, certain),
    $start_timestamp: column('datetime', (t) => sql`${t}.start_timestamp`, certain),
    $end_timestamp: column('datetime', (t) => sql`${t}.end_timestamp`, certain),
    max_inserted_at: column('datetime', (t) => sql`${t}._inserted_at`, certain),
    $urls: column({ array: 'string' }, (t) => sql`${t}.urls`, certain),
    $num_uniq_urls: column('int', (t) => sql`${t}.num_uniq_urls`, certain),
    $entry_current_url: column('string', (t) => sql`${t}.entry_current_url`),
    $entry_pathname: column('string', (t) => sql`${t}.entry_pathname`),
    $entry_hostname: column('string', (t) => sql`${t}.entry_hostname`),
    $end_current_url: column('string', (t) => sql`${t}.end_current_url`),
    $end_pathname: column('string', (t) => sql`${t}.end_pathname`),
    $end_hostname: column('string', (t) => sql`${t}.end_hostname`),
    $exit_current_url: column('string', (t) => sql`${t}.exit_current_url`, hidden),
    $exit_pathname: column('string', (t) => sql`${t}.exit_pathname`, hidden),
    $entry_referring_domain: column('string', (t) => sql`${t}.entry_referring_domain`),
    $entry_referrer: column('string', (t) => sql`${t}.entry_referrer`),
    $entry_utm_source: column('string', (t) => sql`${t}.entry_utm_source`),
    $entry_utm_campaign: column('string', (t) => sql`${t}.entry_utm_campaign`),
    $entry_utm_medium: column('string', (t) => sql`${t}.entry_utm_medium`),
    $entry_utm_term: column('string', (t) => sql`${t}.entry_utm_term`),
    $entry_utm_content: column('string', (t) => sql`${t}.entry_utm_content`),
    ...Object.fromEntries(CLICK_IDS.map(([name, id]) => [name, column('string', (t) => sql`${t}.${id}`)])),
    $pageview_count: column('int', (t) => sql`${t}.pageview_count`, certain),
    $autocapture_count: column('int', (t) => sql`${t}.autocapture_count`, certain),
    $screen_count: column('int', (t) => sql`${t}.screen_count`, certain),
    $page_screen_autocapture_count_up_to: column(
      'int',
      (t) => sql`${t}.page_screen_autocapture_count_up_to`,
      { certain: true, hidden: true },
    ),
    $channel_type: column('string', (t) => sql`${t}.channel_type`, certain),
    $session_duration: column('int', (t) => sql`${t}.session_duration`, certain),
    duration: column('int', (t) => sql`${t}.duration`, { certain: true, hidden: true }),
    $is_bounce: column('bool', (t) => sql`${t}.is_bounce`),
    $last_external_click_url: column('string', (t) => sql`${t}.last_external_click_url`),
    $vitals_lcp: column('float', (t) => sql`${t}.vitals_lcp`),
  },
};

/** Builds the schema. `mode` decides what `person.…` of an event means. */
export function createSchema(mode: PersonMode): Schema {
  return {
    tables: { events: events(mode), persons, person_distinct_ids: personDistinctIds, groups, sessions },
    cohorts: {
      from: sql`cohort_people`,
      project: sql`project_id`,
      cohort: sql`cohort_id`,
      person: sql`person_id`,
    },
  };
}
