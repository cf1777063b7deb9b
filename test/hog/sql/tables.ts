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
    is_identified boolean not null
  );
  create table person_distinct_ids (
    project_id bigint not null, distinct_id text not null, person_id uuid not null
  );
  create table groups (
    project_id bigint not null, group_type_index int not null, group_key text not null,
    created_at timestamptz not null, updated_at timestamptz not null, properties jsonb not null
  );
  create table sessions (
    project_id bigint not null, session_id text not null, session_id_v7 uuid, distinct_id text not null,
    start_timestamp timestamptz not null, end_timestamp timestamptz not null, urls text[] not null default '{}',
    num_uniq_urls integer not null default 0, entry_current_url text, entry_pathname text, entry_hostname text,
    end_current_url text, end_pathname text, end_hostname text, exit_current_url text, exit_pathname text,
    entry_referring_domain text, entry_referrer text, entry_utm_source text, entry_utm_campaign text,
    entry_utm_medium text, entry_utm_term text, entry_utm_content text, entry_gclid text, entry_fbclid text,
    entry_gad_source text, entry_gclsrc text, entry_dclid text, entry_gbraid text, entry_wbraid text, entry_msclkid text,
    entry_twclid text, entry_li_fat_id text, entry_mc_cid text, entry_igshid text, entry_ttclid text, entry_irclid text,
    entry__kx text, pageview_count integer not null default 0, autocapture_count integer not null default 0,
    screen_count integer not null default 0, channel_type text not null default 'Unknown',
    session_duration integer not null default 0, duration integer not null default 0, is_bounce boolean,
    last_external_click_url text, page_screen_autocapture_count_up_to integer not null default 0, vitals_lcp float8,
    _inserted_at timestamptz not null default '2026-03-15'
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
