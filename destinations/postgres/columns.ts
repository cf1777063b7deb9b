import type { Column } from '../../formats/columns.ts';
import type { ModelName } from '../destination.ts';
import { columnsToMerge } from './stage.ts';
import { KEYS } from './table.ts';

/** Columns that every table of Postgres has. No others can be called so. */
const SYSTEM_COLUMNS = new Set(['tableoid', 'xmin', 'cmin', 'xmax', 'cmax', 'ctid']);
const LONGEST_NAME = 63;
const MOST_COLUMNS = 1_600;

/**
 * Tells why no table can have these columns, or why rows that are sent again could not be recognised by them. The result
 * of a query has a table of its own, so its rows need not be recognised.
 */
export function columnFault(columns: readonly Column[], model: ModelName): string | undefined {
  const names = new Set(columns.map(({ name }) => name));
  if (names.size > MOST_COLUMNS) return `PostgreSQL tables have at most ${MOST_COLUMNS} columns`;
  for (const name of names) {
    if (SYSTEM_COLUMNS.has(name)) return `PostgreSQL allows no column that is called '${name}'`;
    if (Buffer.byteLength(name) > LONGEST_NAME) {
      return `PostgreSQL allows at most ${LONGEST_NAME} bytes in the name of a column, but '${name}' has more`;
    }
  }
  if (model === 'hogql') return undefined;
  if (!KEYS[model].some((key) => key.every((name) => names.has(name)))) {
    const needed = KEYS[model].map((key) => key.join(' and ')).join(', or ');
    return `PostgreSQL batch exports of ${model} need the columns ${needed}, by which a row that is sent again is recognised`;
  }
  const absent = columnsToMerge(model).filter((name) => !names.has(name));
  if (absent.length === 0) return undefined;
  return `PostgreSQL batch exports of ${model} need the columns ${absent.join(' and ')}, which tell which of two rows is newer`;
}
