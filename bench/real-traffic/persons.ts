import type pg from 'pg';

const SMALL_PROJECTS = 1_000;
/** The number of the project of a person. The load generator has the same rule (`projectOf` in sessions.go). */
const PROJECT = `case when n % 10 < 4 then 1 when n % 10 < 8 then 2 else 3 + n / 10 % ${SMALL_PROJECTS} end`;

/** What a person has after a visit, as ingestion stores it: the last values of the properties of events, and the first ones. */
const PROPERTIES = `jsonb_build_object(
  '$os', 'Mac OS X', '$os_version', '10.15.7', '$browser', 'Chrome', '$browser_version', 110 + n % 8,
  '$device_type', 'Desktop', '$current_url', 'https://shop.example.com/shop/' || n % 40 || '/article-' || n || '?ref=menu',
  '$pathname', '/shop/' || n % 40 || '/article-' || n, '$screen_height', 1080, '$screen_width', 1280 + n % 20 * 64,
  '$viewport_height', 969, '$viewport_width', 1280 + n % 20 * 64, '$referrer', 'https://www.google.com/',
  '$referring_domain', 'www.google.com', '$raw_user_agent', 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/' || 110 + n % 8 || '.0.0.0 Safari/537.36')`;

/** Makes two large projects and a thousand small ones, and fills the table of persons. The database is empty. */
export async function fillPersons(admin: pg.Client, persons: number): Promise<void> {
  await admin.query(
    `insert into organizations (id, name, slug) values ('00000000-0000-7000-8000-000000000000', 'bench', 'bench')`,
  );
  await admin.query(
    `insert into projects (id, uuid, organization_id, name, api_token)
     overriding system value
     select n, gen_random_uuid(), '00000000-0000-7000-8000-000000000000', 'bench ' || n, 'phc_bench_' || n
     from generate_series(1, ${SMALL_PROJECTS + 2}) n`,
  );
  for (let from = 0; from < persons; from += 200_000) {
    const to = Math.min(from + 200_000, persons) - 1;
    await admin.query(
      `with made as (
         select n, ${PROJECT} as project_id, md5('person ' || n)::uuid as id, ${PROPERTIES} as latest
         from generate_series(${from}, ${to}) n),
       stored as (
         insert into persons (project_id, id, created_at, is_identified, properties, version, changed_at)
         select project_id, id, now() - interval '30 days', true,
           latest || (select jsonb_object_agg('$initial_' || ltrim(key, '$'), value) from jsonb_each(latest)), 1,
           now() - interval '1 day'
         from made)
       insert into person_distinct_ids (project_id, distinct_id, person_id, version, changed_at)
       select project_id, 'user-' || n, id, 0, now() - interval '30 days' from made`,
    );
  }
  // Maintenance has read the words of persons, as it has on any installation that runs.
  await admin.query(`insert into person_words_read (project_id, through) select id, now() from projects`);
  await admin.query('vacuum analyze persons');
  await admin.query('vacuum analyze person_distinct_ids');
}
