import type pg from 'pg';

/**
 * How many events share an `inserted_at`, and how much later the next ones are. This is how transactions of capture
 * store events.
 */
const TOGETHER = 500;
const STEP_MILLISECONDS = 4;

/** Returns how long an interval must be to contain this many events. */
export const spanOf = (rows: number): number => Math.ceil(rows / TOGETHER) * STEP_MILLISECONDS;

const fields = (json: (name: string) => string) =>
  `select uuid, event, distinct_id, timestamp, created_at, inserted_at as _inserted_at, ${json('properties')},
   person_id, ${json('person_properties')}, elements_chain from events`.replaceAll(/\s+/g, ' ');

/** The fields of an exported event for the other ways. TEXT_QUERY reads JSON documents as texts. */
export const QUERY = fields((name) => name);
export const TEXT_QUERY = fields((name) => `${name}::text as ${name}`);

/** Fills the events table with web analytics events of about 700 bytes, of 20,000 persons, in batches. */
export async function createEvents(client: pg.Client, rows: number, start: Date): Promise<void> {
  await client.query('select setseed(0.42)');
  const step = 100_000;
  for (let from = 0; from < rows; from += step) {
    await client.query(INSERT, [from, Math.min(rows, from + step) - 1, start]);
  }
}

/** Repeats the first events, with new ids and later times, until the table has the wanted number. */
export async function repeatEvents(
  client: pg.Client,
  have: number,
  want: number,
  start: Date,
): Promise<void> {
  const { rows } = await client.query(
    `select string_agg(quote_ident(column_name), ', ') as names from information_schema.columns
     where table_schema = 'public' and table_name = 'events' and column_name not in ('uuid', 'inserted_at')`,
  );
  for (let at = have; at < want; at += have) {
    await client.query(
      `insert into events (uuid, inserted_at, ${rows[0].names})
       select uuidv7(), inserted_at + make_interval(secs => $1::float8 / 1000), ${rows[0].names} from events
       where inserted_at >= $2 and inserted_at < $3`,
      [spanOf(at), start, new Date(start.getTime() + spanOf(Math.min(have, want - at)))],
    );
  }
  await client.query('vacuum (analyze) events');
  await client.query('checkpoint');
}

const INSERT = `
  insert into events (project_id, uuid, timestamp, created_at, inserted_at, historical, event, distinct_id, properties,
    session_id, window_id, elements_chain, person_id, person_mode, person_properties)
  select 1, uuidv7(), at, at + interval '350 ms', $3::timestamptz + make_interval(secs => i / 500 * 0.004), false,
    name, 'user-' || person || '@example.com',
    replace(replace(json_build_object(
      '$browser', browser, '$browser_version', 100 + person % 40, '$os', os, '$device_type', device,
      '$screen_height', 800 + person % 600, '$screen_width', 1280 + person % 900,
      '$current_url', 'https://app.example.com/' || section || '/' || (random() * 9999)::int || '?ref=' || (random() * 1e6)::int,
      '$host', 'app.example.com', '$pathname', '/' || section || '/' || (random() * 9999)::int,
      '$lib', 'web', '$lib_version', '1.434.18', '$insert_id', substr(md5(random()::text), 1, 16),
      '$time', extract(epoch from at), '$session_id', session, '$window_id', session,
      '$referrer', 'https://www.google.com/', '$ip', '10.' || person % 250 || '.' || i % 250 || '.7',
      'plan', (array['free', 'team', 'enterprise'])[1 + person % 3], 'value', round((random() * 1000)::numeric, 2),
      'title', 'Überblick – ' || section)::text, '" : ', '":'), ', "', ',"')::json,
    session, session,
    case when name = '$autocapture'
      then 'a.btn:attr__class="btn"attr__href="/' || section || '"nth-child="2"nth-of-type="1"text="Open";div.row:nth-child="1"'
      else '' end,
    md5('person' || person)::uuid, 'full',
    replace(replace(json_build_object('email', 'user-' || person || '@example.com', 'plan', (array['free', 'team', 'enterprise'])[1 + person % 3],
      'created', 1700000000 + person)::text, '" : ', '":'), ', "', ',"')::json
  from (
    select i, person, timestamptz '2026-11-01 00:00:00+00' + make_interval(secs => i * 0.3 + random()) as at,
      (array['$pageview', '$pageview', '$autocapture', '$pageleave', 'signed up', 'purchase made'])[1 + (random() * 5)::int] as name,
      (array['Chrome', 'Firefox', 'Safari', 'Edge'])[1 + person % 4] as browser,
      (array['Windows', 'Mac OS X', 'Linux', 'Android', 'iOS'])[1 + person % 5] as os,
      (array['Desktop', 'Mobile', 'Tablet'])[1 + person % 3] as device,
      (array['home', 'settings', 'reports', 'billing', 'projects', 'insights'])[1 + (random() * 5)::int] as section,
      md5(person || '-' || i / 50000)::uuid::text as session
    from (select i, (power(random(), 2) * 20000)::int as person from generate_series($1::int, $2::int) i offset 0) drawn
    offset 0
  ) event`;
