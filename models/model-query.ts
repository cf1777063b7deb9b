import type { Column } from '../formats/columns.ts';

/** What can be exported. */
export const MODELS = ['events', 'persons', 'sessions'] as const;
export type Model = (typeof MODELS)[number];

/** Families of destinations: each is given columns of its own. */
export type ColumnSet = 'files' | 'postgres' | 'http';

export interface ModelQuery {
  /** `copy (select …) to stdout (format binary)`. */
  text: string;
  columns: readonly Column[];
  /** The SELECT of it; its columns are those above, in their order, under other names. */
  select: string;
  /** Settings of Postgres that belong to it, for `copyOut`. */
  settings: Readonly<Record<string, string>>;
}

/** What the export is set up to send cannot be sent; the message is for who set it up. */
export class ModelError extends Error {
  override readonly name = 'ModelError';
  /** The field of the export that is wrong. */
  readonly field: 'model' | 'filters' | 'hogql_query';
  /** More about it, where the message is one that clients know. */
  readonly detail: string | null;

  constructor(field: ModelError['field'], message: string, detail: string | null = null) {
    super(message);
    this.field = field;
    this.detail = detail;
  }
}

export const copyText = (select: string): string => `copy (${select}) to stdout (format binary)`;
