/**
 * The type of a column of a COPY, which also decides its type in a file. `json` is a JSON document (from a `json`,
 * `jsonb` or `text` column), `timestamp` a timestamptz, `strings` a text[].
 */
export type ColumnType =
  | 'string'
  | 'json'
  | 'uuid'
  | 'int32'
  | 'int64'
  | 'float64'
  | 'bool'
  | 'timestamp'
  | 'strings';

export interface Column {
  name: string;
  type: ColumnType;
  nullable: boolean;
}
