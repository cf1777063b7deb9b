import type { Column } from '../../formats/columns.ts';

/** The fields of an exported event, for every way of exporting it. */
export const QUERY = `select uuid, event, distinct_id, project_id as team_id, timestamp, created_at,
  inserted_at as _inserted_at, properties, person_id, person_properties, elements_chain from events`;

const TYPES: Record<string, Column['type']> = {
  uuid: 'uuid',
  event: 'string',
  distinct_id: 'string',
  team_id: 'int32',
  timestamp: 'timestamp',
  created_at: 'timestamp',
  _inserted_at: 'timestamp',
  properties: 'json',
  person_id: 'uuid',
  person_properties: 'json',
  elements_chain: 'string',
};

export const COLUMNS: Column[] = Object.entries(TYPES).map(([name, type]) => ({
  name,
  type,
  nullable: false,
}));
