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
