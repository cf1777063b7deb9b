import type { SealedWeek } from '../../db/event-spans.ts';
import type { Column } from '../../formats/columns.ts';
import type { ActionStep } from '../../properties/index.ts';

/** For how many seconds Postgres may work for a query: while somebody waits for the answer, and while nobody does. */
export const MOST_SECONDS = { atOnce: 15, inBackground: 600 } as const;
/** What the values of an answer may take together. */
export const MOST_BYTES = 16 * 1024 * 1024;

/** Conditions that a query takes from outside of its text. */
export interface QueryFilters {
  dateRange?:
    | { date_from?: string | null | undefined; date_to?: string | null | undefined }
    | null
    | undefined;
  properties?: unknown;
  filterTestAccounts?: boolean | null | undefined;
}

/** A whole SELECT. */
export interface HogQLQuery {
  kind: 'HogQLQuery';
  query: string;
  /** What stands for the placeholders of the text. */
  values?: Record<string, unknown> | null | undefined;
  filters?: QueryFilters | null | undefined;
}

/** What events a list has. */
export interface EventConditions {
  where?: string[] | null | undefined;
  event?: string | null | undefined;
  events?: string[] | null | undefined;
  distinctId?: string | null | undefined;
  personId?: string | null | undefined;
  actionId?: number | null | undefined;
  properties?: unknown;
  fixedProperties?: unknown;
  filterTestAccounts?: boolean | null | undefined;
}

/** The part of all events that a page reads, in instants with all their digits. */
export interface EventSpan {
  after?: string | undefined;
  before?: string | undefined;
  /** Only events behind this one, in the order of the list. */
  position?: { timestamp: string; uuid: string; ascending: boolean } | undefined;
  /** Only events that were stored before. */
  storedBefore?: string | undefined;
}

/** Events, by columns and conditions. */
export interface EventsQuery extends EventConditions {
  kind: 'EventsQuery';
  select: string[];
  after?: string | null | undefined;
  before?: string | null | undefined;
  /** Stands for `after` and `before`, where the list is read page by page. */
  span?: EventSpan | undefined;
  orderBy?: string[] | null | undefined;
  limit?: number | null | undefined;
  offset?: number | null | undefined;
}

/** Persons, by columns and conditions. */
export interface ActorsQuery {
  kind: 'ActorsQuery';
  select?: string[] | null | undefined;
  search?: string | null | undefined;
  properties?: unknown;
  fixedProperties?: unknown;
  orderBy?: string[] | null | undefined;
  limit?: number | null | undefined;
  offset?: number | null | undefined;
}

/** Events as they are stored, by conditions. Whoever reads them chooses times, the order and how many. */
export interface EventSource extends EventConditions {
  kind: 'EventSource';
  /** The times for which it is read. */
  span?: EventSpan | undefined;
}

/** A query with an answer of its own. */
export type QueryRequest = HogQLQuery | EventsQuery | ActorsQuery;

/**
 * What a query is compiled for: an answer in JSON, which has a page of rows and is held in memory, or a file, which has all rows
 * and is written row by row.
 */
export type QueryForm = 'answer' | FileForm;
/** A sheet is a file whose texts no spreadsheet takes for formulas. */
export type FileForm = 'file' | 'sheet';

/** What a query is compiled from. */
export interface QueryJob {
  form: QueryForm;
  request: QueryRequest | EventSource;
  projectId: number;
  timezone: string;
  /** Milliseconds since 1970. */
  now: number;
  /** The filters that leave out a project's own people. */
  testAccounts: unknown[];
  /** The steps of the action that the query names. */
  actionSteps?: readonly ActionStep[] | undefined;
  /** The times of the project's events in weeks that are over. */
  weeks: readonly SealedWeek[];
}

/** A column of the answer. */
export interface OutputColumn {
  name: string;
  type: string;
  /** Where its value is: the number of a column of the statement, or an object of several. */
  from: number | Composite;
}

/** A value that is put together of several columns. */
export interface Composite {
  of: 'event' | 'person' | 'actor' | 'display name';
  /** The number of the column for each key. */
  keys: Readonly<Record<string, number>>;
}

export interface CompiledQuery {
  /**
   * A SELECT. Each of its columns is a text with the JSON of a value, and the last one the size of all rows so far. From the row
   * on with which they are too large together, there are no values.
   */
  text: string;
  values: readonly (string | string[])[];
  columns: OutputColumn[];
  /** How many columns with values the statement has. */
  width: number;
  /** The page. Null: the query says itself how many rows it wants. */
  page: { limit: number; offset: number } | null;
  /** The columns that tell the place of a row in a list by time. Null: the list has another order. */
  place: { timestamp: number; uuid: number } | null;
  /** The query as HogQL. */
  hogql: string;
}

/** A query whose rows are written to a file. */
export interface CompiledFile {
  /** `copy (select …) to stdout (format binary)`. */
  text: string;
  /** The SELECT inside the COPY. */
  select: string;
  /** The columns of the file. */
  columns: Column[];
  /** The query as HogQL. */
  hogql: string;
}

/** A query cannot be compiled or run. The message is for whoever wrote it. */
export class QueryError extends Error {
  override readonly name = 'QueryError';
  /** The field of the request that is wrong, such as `query__select__0`. */
  readonly field: string;
  /** The line with a mark under the place, if there is one. */
  readonly excerpt: string | null;

  constructor(field: string, message: string, excerpt: string | null = null) {
    super(message);
    this.field = field;
    this.excerpt = excerpt;
  }
}
