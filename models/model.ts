import type { Column } from '../formats/columns.ts';
import { build, type Expr } from '../hog/ast/index.ts';
import type { Schema } from '../hog/sql/index.ts';
import type { OpenInterval } from '../intervals/index.ts';

/** A default column of a model, and the HogQL that computes it. */
export interface ModelColumn extends Column {
  expr: Expr;
}

/**
 * The kinds of destinations that get the same default columns: `files`, `tables` of a database, and `capture`, which takes
 * events as a client sends them.
 */
export const COLUMN_SETS = ['files', 'tables', 'capture'] as const;
export type ColumnSet = (typeof COLUMN_SETS)[number];

/** The rows of an interval of a model, as HogQL sees them: the table that has the model's name. */
export interface ModelSource {
  schema: Schema;
  /** The conditions for the interval, if the table has other rows too. */
  where: Expr[];
  /** The settings of Postgres with which the rows are read. */
  settings: Readonly<Record<string, string>>;
}

/** Which of two rows with the same key stays. Runs of several intervals may come in any order. */
export interface Newer {
  /** Columns that decide, the most important first. The higher value is newer. */
  order: readonly [string, ...string[]];
  /** Further columns that decide, if the table has them. */
  finer: readonly string[];
  /** Whether the newer row must differ in one of these columns. */
  strictly: boolean;
}

/** How a table of a database keeps the rows of a model, each once. */
export interface TableRules {
  /** The possible keys of a row, best first. */
  keys: readonly (readonly [string, ...string[]])[];
  /** Null: rows never change, so the row that is there stays. */
  newer: Newer | null;
  /** The columns of short texts. A table that Sluice creates limits them to 200 characters, as those of PostHog's exports are. */
  shortTexts: readonly string[];
}

/** How the first row of a model is found within a time. */
export interface FirstData {
  /** Selects `first`: when the first row of project $1 was stored within [$2, $3). It runs as the reader. */
  sql: string;
  /** Whether it searches partitions of events, so that it is asked week by week. */
  isByWeek: boolean;
}

/** All that is known of a model: something that can be exported. */
export interface Model {
  /** Its name in the API. The table in `hogql_query` is called so. */
  name: string;
  /** What one row is, as in "one row for each event". */
  row: string;
  /** The default columns. A destination whose kind is missing does not take the model. */
  columns: Readonly<Record<'files' | 'tables', readonly ModelColumn[]>> &
    Partial<Readonly<Record<ColumnSet, readonly ModelColumn[]>>>;
  /** The documents that Postgres stores as text, so that they are exported as they are. All others are converted. */
  storedTexts: readonly string[];
  source(interval: OpenInterval): ModelSource;
  /**
   * Whether its rows are events: filters and lists of event names choose among them, and a trace of an event looks for it
   * in the exports.
   */
  isOfEvents: boolean;
  /** Whether a row can change after its interval. A later read of the interval then returns other rows. */
  changes: boolean;
  /** Whether it is made of events, which are deleted when they are older than the retention. */
  expires: boolean;
  firstData: FirstData;
  table: TableRules;
  /** What docs/exports-models.md says of it. `npm run docs` writes it there. */
  docs: {
    /** Which rows an interval has. */
    rows: string;
    /** The order of the rows. */
    order: string;
    /** What `_inserted_at` means. */
    insertedAt: string;
    /** The fields that a query can name. */
    fields: string;
  };
}

/** Columns that are fields of the model's table. */
export const fieldsOf = (columns: readonly Column[]): ModelColumn[] =>
  columns.map((column) => ({ ...column, expr: build.field(column.name) }));
