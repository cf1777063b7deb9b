import type { Column } from '../../formats/columns.ts';
import { type Rows, sql, type Table } from '../../hog/sql/index.ts';
import type { OpenInterval } from '../../intervals/index.ts';
import { boundsOf, certain, uncertain } from '../changes.ts';
import { fieldsOf, type Model } from '../model.ts';

/** Called as in PostHog's table of groups, where that has such a column. */
const COLUMNS: readonly Column[] = [
  { name: 'team_id', type: 'int32', nullable: false },
  { name: 'group_type_index', type: 'int32', nullable: false },
  { name: 'group_type', type: 'string', nullable: true },
  { name: 'group_key', type: 'string', nullable: false },
  { name: 'group_properties', type: 'json', nullable: false },
  { name: 'created_at', type: 'timestamp', nullable: false },
  { name: 'updated_at', type: 'timestamp', nullable: false },
  { name: 'version', type: 'int64', nullable: false },
  { name: 'is_deleted', type: 'bool', nullable: false },
  { name: '_inserted_at', type: 'timestamp', nullable: false },
];

/**
 * A row for each group whose last change was within the interval, and one for each group that was deleted within the
 * interval and has not come again since. Rows show the groups as they are now: a group that changes again later belongs to
 * the interval of that change.
 */
const changedWithin =
  (interval: OpenInterval): Rows =>
  (_project, parameters) => {
    const [from, to] = boundsOf(interval, parameters);
    return sql`(select c.project_id, c.group_type_index::integer, t.group_type, c.group_key, c.properties, c.created_at, c.updated_at,
        c.version, c.is_deleted, c.changed_at
      from (
        select g.project_id, g.group_type_index, g.group_key, g.properties, g.created_at, g.updated_at, g.version,
          false as is_deleted, g.changed_at
        from groups g where g.changed_at >= ${from} and g.changed_at < ${to}
        union all
        select d.project_id, d.group_type_index, d.group_key, '{}'::jsonb, d.created_at, d.changed_at, d.version,
          true, d.changed_at
        from deleted_groups d
        where d.changed_at >= ${from} and d.changed_at < ${to}
          and not exists (select from groups g where g.project_id = d.project_id
            and g.group_type_index = d.group_type_index and g.group_key = d.group_key)) as c
      left join group_types t on t.project_id = c.project_id and t.group_type_index = c.group_type_index) as changed`;
  };

/** Each also by its name in the table of groups in HogQL. */
const FIELDS: Table['fields'] = {
  team_id: certain('int', (t) => sql`${t}.project_id`),
  group_type_index: certain('int', (t) => sql`${t}.group_type_index`),
  index: certain('int', (t) => sql`${t}.group_type_index`),
  group_type: uncertain('string', (t) => sql`${t}.group_type`),
  group_key: certain('string', (t) => sql`${t}.group_key`),
  key: certain('string', (t) => sql`${t}.group_key`),
  group_properties: certain('json', (t) => sql`${t}.properties`),
  properties: certain('json', (t) => sql`${t}.properties`),
  created_at: certain('datetime', (t) => sql`${t}.created_at`),
  updated_at: certain('datetime', (t) => sql`${t}.updated_at`),
  version: certain('int', (t) => sql`${t}.version`),
  is_deleted: certain('bool', (t) => sql`${t}.is_deleted`),
  _inserted_at: certain('datetime', (t) => sql`${t}.changed_at`),
};

/** The groups that changed within an interval, and their deletions. */
export const groups = {
  name: 'groups',
  row: 'group',
  columns: {
    files: fieldsOf(COLUMNS),
    tables: fieldsOf(COLUMNS.filter(({ name }) => name !== '_inserted_at')),
  },
  storedTexts: [],
  source: (interval) => ({
    schema: {
      tables: {
        groups: {
          ...{ name: 'groups', from: changedWithin(interval), project: sql`project_id` },
          fields: FIELDS,
        },
      },
    },
    where: [],
    settings: {},
  }),
  isOfEvents: false,
  changes: true,
  expires: false,
  firstData: {
    sql: `select least(
      (select min(changed_at) from groups where project_id = $1 and changed_at >= $2 and changed_at < $3),
      (select min(changed_at) from deleted_groups where project_id = $1 and changed_at >= $2 and changed_at < $3)
    ) as first`,
    isByWeek: false,
  },
  table: {
    keys: [['team_id', 'group_type_index', 'group_key']],
    // Each change and each deletion of a group has a version of its own.
    newer: { order: ['version'], finer: [], strictly: true },
    shortTexts: [],
  },
  docs: {
    rows: 'groups that last changed (`changed_at`) in the interval. One row with `is_deleted` for each group that was deleted in the interval and has not come again',
    order: 'none',
    insertedAt: 'the time of the last change from the horizon',
    fields:
      'the columns above, also by their names in HogQL (`index`, `key`, `properties`). Rows of deletions have no properties',
  },
} as const satisfies Model;
