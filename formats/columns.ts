/**
 * What a column of a COPY holds, and with it how a file types it. `json` is a JSON document (of a `json` or `text`
 * column, or jsonb's); `timestamp` a timestamptz; `strings` a text[].
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
