// Visits of a few people, and what must become of them, told once more in SQL.
import { expect } from '@jest/globals';
import fc from 'fast-check';
import type { Pool } from '../../db/pool.ts';

const NAMES = ['$current_url', '$browser', '$os', 'utm_source'];

/**
 * Compares every person of a project with its stored events: of each property, the latest value, and the first one, which every
 * event shows since it is there. Returns how many persons there are.
 */
export async function expectLikeEvents(pool: Pool, projectId: number): Promise<number> {
  const { rows } = await pool.query(
    `with told as (
       select d.person_id, t.key as name, t.value #>> '{}' as value,
         row_number() over (partition by d.person_id, t.key order by e.inserted_at desc, e.timestamp desc, e.ctid desc) as back
       from events e join person_distinct_ids d on d.project_id = e.project_id and d.distinct_id = e.distinct_id,
         json_each(e.properties) t
       where e.project_id = $1 and t.key = any($2)),
     latest as (
       select person_id, jsonb_object_agg(name, value) as properties from told where back = 1 group by 1),
     brought as (
       select person_id, jsonb_object_agg(name, all_values) as all_values
       from (select person_id, name, jsonb_agg(value) as all_values from told group by 1, 2) t group by 1)
     select p.properties, latest.properties as latest, brought.all_values
     from persons p join latest on latest.person_id = p.id join brought on brought.person_id = p.id
     where p.project_id = $1`,
    [projectId, NAMES],
  );
  for (const { properties, latest, all_values: brought } of rows) {
    expect(properties).toMatchObject(latest);
    for (const name of Object.keys(latest)) {
      expect(brought[name]).toContain(properties[`$initial_${name.replace('$', '')}`]);
    }
  }
  const { rows: first } = await pool.query(
    `select distinct d.person_id, t.key, t.value #>> '{}' as shown, p.properties ->> t.key as stored
     from events e join person_distinct_ids d on d.project_id = e.project_id and d.distinct_id = e.distinct_id
       join persons p on p.project_id = d.project_id and p.id = d.person_id,
       json_each(e.person_properties) t
     where e.project_id = $1 and t.key like '$initial%'`,
    [projectId],
  );
  expect(first.filter(({ shown, stored }) => shown !== stored)).toEqual([]);
  return rows.length;
}

export const PEOPLE = 31;

/** An event of one of the people, with some copied properties. */
export const visit = fc.record({
  id: fc.integer({ min: 0, max: PEOPLE - 1 }).map((n) => `visitor ${n}`),
  properties: fc.dictionary(fc.constantFrom(...NAMES), fc.integer({ min: 0, max: 9 }).map(String), {
    minKeys: 1,
  }),
});
