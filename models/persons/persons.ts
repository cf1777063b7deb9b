import type { Column } from '../../formats/columns.ts';
import { createSchema, type Rows, sql, type Table } from '../../hog/sql/index.ts';
import type { OpenInterval } from '../../intervals/index.ts';
import { boundsOf, certain, uncertain } from '../changes.ts';
import { fieldsOf, type Model } from '../model.ts';

const COLUMNS: readonly Column[] = [
  { name: 'team_id', type: 'int32', nullable: false },
  { name: 'distinct_id', type: 'string', nullable: false },
  { name: 'person_id', type: 'uuid', nullable: false },
  { name: 'properties', type: 'json', nullable: false },
  { name: 'person_distinct_id_version', type: 'int64', nullable: false },
  { name: 'person_version', type: 'int64', nullable: false },
  { name: 'created_at', type: 'timestamp', nullable: false },
  { name: 'is_deleted', type: 'bool', nullable: false },
  { name: '_inserted_at', type: 'timestamp', nullable: false },
];

/**
 * A row for each distinct id of the persons whose last change was within the interval, and a row for each distinct id
 * whose person was deleted within the interval and that no other person has got since. Rows show the persons as they are
 * now: a person who changes again later belongs to the interval of that change.
 */
const changedWithin =
  (interval: OpenInterval): Rows =>
  (_project, parameters) => {
    const [from, to] = boundsOf(interval, parameters);
    return sql`(select p.project_id, d.distinct_id, p.id as person_id, p.properties,
        d.version as person_distinct_id_version, p.version as person_version, p.created_at, p.is_identified,
        false as is_deleted, p.changed_at
      from persons p join person_distinct_ids d on d.project_id = p.project_id and d.person_id = p.id
      where p.changed_at >= ${from} and p.changed_at < ${to}
      union all
      select g.project_id, g.distinct_id, g.person_id, '{}'::jsonb, g.version, g.person_version, g.person_created_at,
        null, true, g.changed_at
      from deleted_distinct_ids g
      where g.changed_at >= ${from} and g.changed_at < ${to}
        and not exists (select from person_distinct_ids d where d.project_id = g.project_id and d.distinct_id = g.distinct_id)) as changed`;
  };

const FIELDS: Table['fields'] = {
  team_id: certain('int', (t) => sql`${t}.project_id`),
  distinct_id: certain('string', (t) => sql`${t}.distinct_id`),
  person_id: certain('uuid', (t) => sql`${t}.person_id`),
  id: certain('uuid', (t) => sql`${t}.person_id`),
  properties: certain('json', (t) => sql`${t}.properties`),
  person_distinct_id_version: certain('int', (t) => sql`${t}.person_distinct_id_version`),
  person_version: certain('int', (t) => sql`${t}.person_version`),
  created_at: certain('datetime', (t) => sql`${t}.created_at`),
  is_deleted: certain('bool', (t) => sql`${t}.is_deleted`),
  // It is not known of deleted persons.
  is_identified: uncertain('bool', (t) => sql`${t}.is_identified`),
  _inserted_at: certain('datetime', (t) => sql`${t}.changed_at`),
};

/** Cohorts have their members of the time of the query. */
const { cohorts } = createSchema('on event');

/** The persons that changed within an interval, and their deletions, by distinct id. */
export const persons = {
  name: 'persons',
  row: 'distinct id of a person',
  columns: {
    files: fieldsOf(COLUMNS),
    tables: fieldsOf(COLUMNS.filter(({ name }) => name !== '_inserted_at')),
  },
  storedTexts: [],
  source: (interval) => ({
    schema: {
      tables: {
        persons: {
          ...{ name: 'persons', from: changedWithin(interval), project: sql`project_id` },
          fields: FIELDS,
        },
      },
      ...(cohorts && { cohorts }),
    },
    where: [],
    settings: {},
  }),
  isOfEvents: false,
  changes: true,
  expires: false,
  firstData: {
    sql: `select least(
      (select min(changed_at) from persons where project_id = $1 and changed_at >= $2 and changed_at < $3),
      (select min(changed_at) from deleted_distinct_ids where project_id = $1 and changed_at >= $2 and changed_at < $3)
    ) as first`,
    isByWeek: false,
  },
  table: {
    keys: [['team_id', 'distinct_id']],
    // Versions of persons can be compared only while the distinct_id belongs to the same person.
    newer: { order: ['person_distinct_id_version', 'person_version'], finer: [], strictly: true },
    shortTexts: [],
  },
  docs: {
    rows: 'one row for each distinct_id of every person that last changed (`changed_at`) in the interval. One row with `is_deleted` for each distinct_id whose person was deleted in the interval, unless it belongs to another person by now',
    order: 'none',
    insertedAt: 'the time of the last change from the horizon',
    fields:
      'the columns above, `id` (as `person_id`) and `is_identified`. Rows of deletions have no properties, and `is_identified` is null',
  },
} as const satisfies Model;
