import type { Column } from '../formats/columns.ts';

export const PERSON_COLUMNS: readonly Column[] = [
  { name: 'team_id', type: 'int32', nullable: false },
  { name: 'distinct_id', type: 'string', nullable: false },
  { name: 'person_id', type: 'uuid', nullable: false },
  { name: 'properties', type: 'json', nullable: false },
  { name: 'person_distinct_id_version', type: 'int64', nullable: false },
  { name: 'person_version', type: 'int64', nullable: false },
  { name: 'created_at', type: 'timestamp', nullable: false },
  { name: 'is_deleted', type: 'bool', nullable: false },
  { name: '_inserted_at', type: 'timestamp', nullable: false },
];
