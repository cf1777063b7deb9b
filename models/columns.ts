import type { Column } from '../formats/columns.ts';
import { EVENT_COLUMNS } from './event-columns.ts';
import type { ColumnSet, Model } from './model-query.ts';
import { personColumns } from './persons.ts';
import { SESSION_COLUMNS } from './sessions.ts';

/** Returns the default columns of a model for a group of destinations. */
export function columnsOf(model: Model, columnSet: ColumnSet): readonly Column[] {
  if (model === 'events') return EVENT_COLUMNS[columnSet];
  if (columnSet === 'http') return [];
  return model === 'persons' ? personColumns(columnSet) : SESSION_COLUMNS;
}
