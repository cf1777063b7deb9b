import type { Column } from '../../formats/columns.ts';
import type { Model } from '../../models/index.ts';
import { absentOrder, hasKey, keyOf, keysText } from './rules.ts';

/** Columns that every table of Postgres has. No others can be called so. */
const SYSTEM_COLUMNS = new Set(['tableoid', 'xmin', 'cmin', 'xmax', 'cmax', 'ctid']);
const LONGEST_NAME = 63;
const MOST_COLUMNS = 1_600;

/**
 * Tells why no table can have these columns, or why rows that are sent again could not be recognised by them. Rows without
 * a key, such as the result of a query, have a table of their own, so they need not be recognised.
 */
export function columnFault(
  columns: readonly Column[],
  { name: model, table: rules }: Pick<Model, 'name' | 'table'>,
): string | undefined {
  const names = new Set(columns.map(({ name }) => name));
  if (names.size > MOST_COLUMNS) return `PostgreSQL tables have at most ${MOST_COLUMNS} columns`;
  for (const name of names) {
    if (SYSTEM_COLUMNS.has(name)) return `PostgreSQL allows no column that is called '${name}'`;
    if (Buffer.byteLength(name) > LONGEST_NAME) {
      return `PostgreSQL allows at most ${LONGEST_NAME} bytes in the name of a column, but '${name}' has more`;
    }
  }
  if (!hasKey(rules)) return undefined;
  if (!keyOf(rules, names)) {
    return `PostgreSQL batch exports of ${model} need the columns ${keysText(rules)}, by which a row that is sent again is recognised`;
  }
  const absent = absentOrder(rules, names);
  if (absent.length === 0) return undefined;
  return `PostgreSQL batch exports of ${model} need the columns ${absent.join(' and ')}, which tell which of two rows is newer`;
}
