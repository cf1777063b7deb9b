// Tables as `hog/sql/schema.ts` expects them, for tests and benchmarks of printed SQL.
import type { Queryable } from '../../../db/pool.ts';

export const PROJECT = 7;
export const OTHER_PROJECT = 8;

const TABLES = `
  create schema if not exists hogql;
  set search_path = hogql, public;
  create table events (
    project_id bigint not null, uuid uuid not null, event text not null, distinct_id text not null,
    properties json not null, timestamp timestamptz not null, created_at timestamptz not null,
    inserted_at timestamptz not null, person_id uuid, person_properties json, elements_chain text not null,
    session_id text, window_id text, person_mode text not null,
    group_0 text, group_1 text, group_2 text, group_3 text, group_4 text
  );
  create table persons (
    project_id bigint not null, id uuid not null, created_at timestamptz not null, properties jsonb not null,
    is_identified boolean not null, last_seen_at timestamptz
  );
  create table person_distinct_ids (
    project_id bigint not null, distinct_id text not null, person_id uuid not null
  );
  create table groups (
    project_id bigint not null, group_type_index int not null, group_key text not null,
    created_at timestamptz not null, updated_at timestamptz, properties jsonb not null
  );
  create table sessions (
    project_id bigint not null, session_id text not null, distinct_id text not null,
    start_timestamp timestamptz not null, end_timestamp timestamptz not null, urls text[], num_uniq_urls bigint,
    entry_current_url text, entry_pathname text, entry_hostname text, end_current_url text, end_pathname text,
    end_hostname text, entry_referring_domain text, entry_utm_source text, entry_utm_campaign text,
    entry_utm_medium text, entry_utm_term text, entry_utm_content text, entry_gclid text, entry_fbclid text,
    pageview_count bigint, autocapture_count bigint, screen_count bigint, channel_type text,
    session_duration bigint, is_bounce boolean, last_external_click_url text, vitals_lcp float8
  );
  create table cohort_people (project_id bigint not null, cohort_id bigint not null, person_id uuid not null);
`;

/** Makes the tables in a schema of their own, beside whatever the project's migrations have. */
export async function createTables(queryable: Queryable): Promise<void> {
  await queryable.query(TABLES);
}

/** What a connection must be set to for the printed names to mean these tables. */
export const SEARCH_PATH = 'set search_path = hogql, public';

export interface EventRow {
  project_id?: number;
  uuid?: string;
  event: string;
  distinct_id?: string;
  properties?: object;
  timestamp?: string;
  person_id?: string | null;
  person_properties?: object | null;
  elements_chain?: string;
  session_id?: string | null;
  group_0?: string | null;
}

export async function insertEvents(queryable: Queryable, rows: EventRow[]): Promise<void> {
  const filled = rows.map((row) => ({
    project_id: PROJECT,
    uuid: '00000000-0000-4000-8000-000000000001',
    distinct_id: 'user-1',
    properties: {},
    elements_chain: '',
    person_mode: 'full',
    timestamp: '2026-03-15T12:34:56.789012Z',
    created_at: '2026-03-15T12:35:00Z',
    inserted_at: '2026-03-15T12:35:01Z',
    ...row,
  }));
  await queryable.query(
    `insert into hogql.events select (json_populate_record(null::hogql.events, r)).* from json_array_elements($1::json) as r`,
    [JSON.stringify(filled)],
  );
}
