import { sqlLiteral } from '../db/sql-literal.ts';
import { timestamptzText } from '../db/timestamptz.ts';
import type { Column } from '../formats/columns.ts';
import type { OpenInterval } from '../intervals/index.ts';
import { type ColumnSet, type ModelQuery, queryOfModel } from './model-query.ts';

const COLUMNS: readonly Column[] = [
  { name: 'team_id', type: 'int32', nullable: false },
  { name: 'distinct_id', type: 'string', nullable: false },
  { name: 'person_id', type: 'uuid', nullable: false },
  { name: 'properties', type: 'json', nullable: false },
  { name: 'person_distinct_id_version', type: 'int64', nullable: false },
  { name: 'person_version', type: 'int64', nullable: false },
  { name: 'created_at', type: 'timestamp', nullable: false },
  { name: 'is_deleted', type: 'bool', nullable: false },
];
const INSERTED_AT: Column = { name: '_inserted_at', type: 'timestamp', nullable: false };

export const personColumns = (columnSet: ColumnSet): readonly Column[] =>
  columnSet === 'files' ? [...COLUMNS, INSERTED_AT] : COLUMNS;

/** Builds the condition `column >= start and column < end`. */
export function within(column: string, { start, end }: OpenInterval): string {
  const at = (instant: number) => sqlLiteral('timestamptz', timestamptzText(instant));
  const from = start === null ? '' : `${column} >= ${at(start)} and `;
  return `${from}${column} < ${at(end)}`;
}

/**
 * Selects a row for each distinct id of the persons whose last change was within the interval, and a row for each
 * distinct id whose person was deleted within the interval and that no other person has got since. Rows show the
 * persons as they are now: a person who changes again later belongs to the interval of that change. Rows have no
 * particular order.
 */
export function personsQuery(projectId: number, interval: OpenInterval, columnSet: ColumnSet): ModelQuery {
  const project = sqlLiteral('integer', String(projectId));
  const insertedAt = (column: string) => (columnSet === 'files' ? `, ${column}` : '');
  const select = `select p.project_id, d.distinct_id, p.id, p.properties::text, d.version, p.version, p.created_at, false${insertedAt('p.changed_at')}
from persons p join person_distinct_ids d on d.project_id = p.project_id and d.person_id = p.id
where p.project_id = ${project} and ${within('p.changed_at', interval)}
union all
select g.project_id, g.distinct_id, g.person_id, '{}', g.version, g.person_version, g.person_created_at, true${insertedAt('g.changed_at')}
from deleted_distinct_ids g
where g.project_id = ${project} and ${within('g.changed_at', interval)}
  and not exists (select from person_distinct_ids d where d.project_id = g.project_id and d.distinct_id = g.distinct_id)`;
  return queryOfModel({ projectId, select, columns: personColumns(columnSet) });
}
