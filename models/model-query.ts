import { ofProject } from '../db/roles/project-setting.ts';
import type { Column } from '../formats/columns.ts';
import type { Source } from './source.ts';

export interface ModelQuery {
  model: Source;
  /** `copy (select …) to stdout (format binary)`. */
  text: string;
  columns: readonly Column[];
  /** The SELECT inside the COPY. Its columns have the order of `columns` but other names. */
  select: string;
  /**
   * Settings of Postgres that the query needs, its project among them. Whoever runs it sets them in the same
   * transaction.
   */
  settings: Readonly<Record<string, string>>;
  /** The cohorts whose members decide about rows or are in columns. Absent if there are none. */
  cohorts?: readonly { id: number; field: 'filters' | 'hogql_query' }[];
  /** The stored form of a `hogql_query`. Absent if the columns are the default ones. */
  schema?: SelectionSchema;
}

/** The stored form of a `hogql_query`: its columns, and the query in a plain form. Each run reads the query again. */
export interface SelectionSchema {
  fields: { expression: string; alias: string }[];
  values: Record<string, never>;
  hogql_query: string;
}

/** What a model says of its rows. The other parts of a `ModelQuery` follow from it. */
interface Selected extends Pick<ModelQuery, 'model' | 'columns' | 'select'> {
  projectId: number;
  settings?: Readonly<Record<string, string>>;
}

/** Completes the query of a model. The reader sees the rows of its project and of no other. */
export const queryOfModel = ({ projectId, model, select, columns, settings }: Selected): ModelQuery => ({
  model,
  text: `copy (${select}) to stdout (format binary)`,
  columns,
  select,
  settings: { ...settings, ...ofProject(projectId) },
});

/** The settings of an export make no valid query. The message is for the person who made the settings. */
export class ModelError extends Error {
  override readonly name = 'ModelError';
  /** The field of the export that is wrong. */
  readonly field: 'model' | 'filters' | 'hogql_query';
  /** Says more, when the message must stay a sentence that clients know. */
  readonly detail: string | null;

  constructor(field: ModelError['field'], message: string, detail: string | null = null) {
    super(message);
    this.field = field;
    this.detail = detail;
  }
}
