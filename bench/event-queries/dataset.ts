import { partitionOf } from '../../db/event-partitions.ts';
import type { Pool } from '../../db/pool.ts';

export const WEEKS = 156;
export const PROJECTS = 20;
export const DAY = 86_400_000;
export const NOW = Date.now();
/** Where the first week begins. */
export const BEGIN = partitionOf(new Date(NOW - (WEEKS - 1) * 7 * DAY)).from.getTime();
/** Where the week begins that still gets events. */
export const OPEN = partitionOf(new Date(NOW)).from.getTime();

/** How many people so many events have. */
export const peopleOf = (events: number): number => Math.floor(events / 100);

export interface Filling {
  events: number;
  /** The last so many weeks get as many events each. */
  weeks?: number;
}

/**
 * Four fifths of all events belong to the first project, which has all of the persons. One of a hundred events came in some
 * days late.
 */
export async function fill(
  pool: Pool,
  projects: readonly number[],
  { events, weeks = WEEKS }: Filling,
): Promise<void> {
  const people = peopleOf(events);
  for (let week = WEEKS - weeks; week < WEEKS; week += 1) {
    const from = BEGIN + week * 7 * DAY;
    const to = Math.min(from + 7 * DAY, NOW);
    await pool.query(
      `insert into events (project_id, uuid, timestamp, created_at, inserted_at, historical, event, distinct_id, properties,
         session_id, elements_chain, person_id, person_mode, person_properties)
       select case when random() < 0.8 then $1 else $2::int + floor(random() * ${PROJECTS - 1})::int end, gen_random_uuid(),
         at - case when random() < 0.01 then random() * interval '5 days' else interval '0' end, at, at, false,
         case when random() < 0.0002 then 'rare' else (array['$pageview', '$pageview', '$autocapture', 'click', 'view', 'scroll'])[1 + floor(random() * 6)::int] end,
         'user-' || who, json_build_object('$current_url', 'https://example.com/' || md5(random()::text), '$browser', 'Chrome',
           'plan', (array['free', 'free', 'free', 'paid'])[1 + floor(random() * 4)::int], 'price', floor(random() * 1000),
           'filler', md5(random()::text) || md5(random()::text) || md5(random()::text) || md5(random()::text) || md5(random()::text)
             || md5(random()::text) || md5(random()::text) || md5(random()::text)),
         md5(who::text), '', md5(who::text)::uuid, 'full', '{"email":"someone@example.com"}'
       from (select $3::timestamptz + n * ($4::timestamptz - $3::timestamptz) / $5 as at, floor(random() * $6)::int as who
             from generate_series(0, $5 - 1) as n) as made`,
      [
        projects[0],
        projects[1],
        new Date(from).toISOString(),
        new Date(to).toISOString(),
        Math.floor(events / weeks),
        people,
      ],
    );
  }
  await pool.query(
    `with made as (
       insert into persons (project_id, id, created_at, is_identified, properties, version, changed_at)
       select $1, md5(n::text)::uuid, now(), true, jsonb_build_object('email', 'user-' || n || '@example.com', 'name', 'Person ' || n),
         0, now() - interval '1 hour'
       from generate_series(0, $2 - 1) as n returning id)
     insert into person_distinct_ids (project_id, distinct_id, person_id, version, changed_at)
     select $1, 'user-' || n, md5(n::text)::uuid, 0, now() from generate_series(0, $2 - 1) as n`,
    [projects[0], people],
  );
}
