import type { Column } from '../formats/columns.ts';
import { build } from '../hog/ast/index.ts';
import { EVENT_COLUMNS } from './event-columns.ts';
import type { ColumnSet, Model, ModelColumn } from './model-query.ts';
import { PERSON_COLUMNS } from './person-columns.ts';
import { SESSION_COLUMNS } from './session-columns.ts';

const fields = (columns: readonly Column[]): ModelColumn[] =>
  columns.map((column) => ({ ...column, expr: build.field(column.name) }));

const COLUMNS: Readonly<Record<Model, Readonly<Record<ColumnSet, readonly ModelColumn[]>>>> = {
  events: EVENT_COLUMNS,
  persons: {
    files: fields(PERSON_COLUMNS),
    postgres: fields(PERSON_COLUMNS.filter(({ name }) => name !== '_inserted_at')),
    http: [],
  },
  sessions: { files: fields(SESSION_COLUMNS), postgres: fields(SESSION_COLUMNS), http: [] },
};

/** Returns the default columns of a model for a group of destinations. */
export const columnsOf = (model: Model, columnSet: ColumnSet): readonly ModelColumn[] =>
  COLUMNS[model][columnSet];
