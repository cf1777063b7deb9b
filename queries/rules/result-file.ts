/** The formats in which the whole result of a query is written. */
export const RESULT_FORMATS = ['csv', 'jsonl', 'parquet', 'arrow'] as const;
export type ResultFormat = (typeof RESULT_FORMATS)[number];

/** What the whole result of a query may take. */
export interface ResultLimits {
  /** From the turn of the query on, with the time in which its reader takes the rows. */
  seconds: number;
  bytes: number;
}

/** The longest row of a result in Postgres' form. Every stored event fits in. */
export const LONGEST_RESULT_ROW = 32 * 1024 * 1024;
