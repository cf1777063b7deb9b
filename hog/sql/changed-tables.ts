// The tables of which exports read the rows of an interval.
import { createSchema, type Field, type Rows, type Schema, type Table } from './schema.ts';
import { sql } from './sql.ts';

/** Instants as Postgres reads them. A null start: there is no beginning. */
export interface Changes {
  start: string | null;
  end: string;
}

/**
 * A row for each distinct id of the persons whose last change was within the interval, and a row for each distinct id
 * whose person was deleted within the interval and that no other person has got since. Rows show the persons as they are
 * now: a person who changes again later belongs to the interval of that change.
 */
const changedPersons =
  ({ start, end }: Changes): Rows =>
  (_project, parameters) => {
    const [from, to] = [start ?? '-infinity', end].map((at) => parameters.add('timestamptz', at));
    return sql`(select p.project_id, d.distinct_id, p.id as person_id, p.properties,
        d.version as person_distinct_id_version, p.version as person_version, p.created_at, p.is_identified,
        false as is_deleted, p.changed_at
      from persons p join person_distinct_ids d on d.project_id = p.project_id and d.person_id = p.id
      where p.changed_at >= ${from!} and p.changed_at < ${to!}
      union all
      select g.project_id, g.distinct_id, g.person_id, '{}'::jsonb, g.version, g.person_version, g.person_created_at,
        null, true, g.changed_at
      from deleted_distinct_ids g
      where g.changed_at >= ${from!} and g.changed_at < ${to!}
        and not exists (select from person_distinct_ids d where d.project_id = g.project_id and d.distinct_id = g.distinct_id)) as changed`;
  };

/** The sessions that received an event within the interval. Each row is the whole session as it is now. */
const changedSessions =
  ({ start, end }: Changes): Rows =>
  (project, parameters) => {
    const [from, to] = [start ?? '-infinity', end].map((at) => parameters.add('timestamptz', at));
    return sql`sessions_changed(${project}::integer, ${from!}, ${to!})`;
  };

const certain = { kind: 'column', certain: true } as const;

const PERSON: Table['fields'] = {
  team_id: { ...certain, type: 'int', of: (t) => sql`${t}.project_id` },
  distinct_id: { ...certain, type: 'string', of: (t) => sql`${t}.distinct_id` },
  person_id: { ...certain, type: 'uuid', of: (t) => sql`${t}.person_id` },
  id: { ...certain, type: 'uuid', of: (t) => sql`${t}.person_id` },
  properties: { ...certain, type: 'json', of: (t) => sql`${t}.properties` },
  person_distinct_id_version: { ...certain, type: 'int', of: (t) => sql`${t}.person_distinct_id_version` },
  person_version: { ...certain, type: 'int', of: (t) => sql`${t}.person_version` },
  created_at: { ...certain, type: 'datetime', of: (t) => sql`${t}.created_at` },
  is_deleted: { ...certain, type: 'bool', of: (t) => sql`${t}.is_deleted` },
  // It is not known of deleted persons.
  is_identified: { kind: 'column', type: 'bool', of: (t) => sql`${t}.is_identified` },
  _inserted_at: { ...certain, type: 'datetime', of: (t) => sql`${t}.changed_at` },
};

/** The fields of sessions, each also by its name in exports, which is without `$`. */
function sessionFields({ tables }: Schema): Table['fields'] {
  const { fields } = tables.sessions as Table;
  const plain = Object.entries(fields).map(([name, field]): [string, Field] => [
    name.replace(/^\$/, ''),
    field,
  ]);
  return {
    ...fields,
    ...Object.fromEntries(plain),
    team_id: { ...certain, type: 'int', of: (t) => sql`${t}.team_id` },
    // As in PostHog, never earlier than the end of the session, so that it can stand for the time of the last change.
    _inserted_at: {
      ...certain,
      type: 'datetime',
      of: (t) => sql`greatest(${t}._inserted_at, ${t}.end_timestamp)`,
    },
  };
}

const SCHEMA = createSchema('on event');
const SESSION = sessionFields(SCHEMA);

/** Returns the schema of the persons that changed within an interval, and of nothing else. Cohorts have their members of now. */
export const changedPersonsSchema = (changes: Changes): Schema => ({
  ...SCHEMA,
  tables: {
    persons: { name: 'persons', from: changedPersons(changes), project: sql`project_id`, fields: PERSON },
  },
});

/** Returns the schema of the sessions that changed within an interval, and of nothing else. */
export const changedSessionsSchema = (changes: Changes): Schema => ({
  tables: {
    sessions: { name: 'sessions', from: changedSessions(changes), project: sql`team_id`, fields: SESSION },
  },
});
