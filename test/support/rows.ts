import type { Queryable } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';

/** Rows as capture writes them, for tests of what reads them. */
export interface EventFields {
  project_id: number;
  uuid?: string;
  event?: string;
  distinct_id?: string;
  properties?: object;
  timestamp: string;
  inserted_at?: string;
  session_id?: string | null;
  person_id?: string;
  person_properties?: object;
  group_0?: string | null;
}

export async function insertEvents(queryable: Queryable, events: readonly EventFields[]): Promise<void> {
  const rows = events.map((fields) => ({
    uuid: uuidv7(),
    event: '$pageview',
    distinct_id: 'user-1',
    properties: {},
    created_at: fields.timestamp,
    inserted_at: fields.timestamp,
    historical: false,
    elements_chain: '',
    person_id: '00000000-0000-4000-8000-000000000001',
    person_mode: 'full',
    person_properties: {},
    ...fields,
  }));
  await queryable.query(
    'insert into events select r.* from json_array_elements($1::json) as e, json_populate_record(null::events, e) as r',
    [JSON.stringify(rows)],
  );
}

export interface PersonFields {
  id: string;
  distinct_ids: string[];
  properties?: object;
  created_at?: string;
  is_identified?: boolean;
  version?: number;
}

export async function insertPerson(
  queryable: Queryable,
  projectId: number,
  fields: PersonFields,
): Promise<void> {
  const { id, distinct_ids, properties = {}, created_at = '2026-01-02T03:04:05Z' } = fields;
  await queryable.query(
    `insert into persons (project_id, id, created_at, is_identified, properties, version, changed_at)
     values ($1, $2, $3, $4, $5, $6, now())`,
    [projectId, id, created_at, fields.is_identified ?? false, properties, fields.version ?? 0],
  );
  await queryable.query(
    `insert into person_distinct_ids (project_id, distinct_id, person_id, version, changed_at)
     select $1, one, $2, 0, now() from unnest($3::text[]) as one`,
    [projectId, id, distinct_ids],
  );
}

export interface GroupFields {
  id: string;
  group_type_index: number;
  group_key: string;
  properties?: object;
}

/** The group, and its type if that is not there yet. */
export async function insertGroup(
  queryable: Queryable,
  projectId: number,
  { id, group_type_index: index, group_key: key, properties = {} }: GroupFields,
): Promise<void> {
  await queryable.query(
    `insert into group_types (project_id, group_type_index, group_type) values ($1, $2, $3) on conflict do nothing`,
    [projectId, index, ['company', 'team', 'site', 'plan', 'fleet'][index]],
  );
  await queryable.query(
    `insert into groups (project_id, group_type_index, group_key, id, created_at, updated_at, properties, version)
     values ($1, $2, $3, $4, '2026-01-02T03:04:05Z', '2026-02-03T04:05:06Z', $5, 0)`,
    [projectId, index, key, id, properties],
  );
}
