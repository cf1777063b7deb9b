import type { Queryable } from '../../../db/pool.ts';
import { insertEvents, OTHER_PROJECT, PROJECT } from './tables.ts';

const ADA = '00000000-0000-4000-8000-0000000000aa';

/** A few rows of every table; everything is there once more, changed, in another project. */
export async function insertWorld(queryable: Queryable): Promise<void> {
  await queryable.query(
    'truncate hogql.events, hogql.persons, hogql.person_distinct_ids, hogql.groups, hogql.sessions, hogql.cohort_people',
  );
  const f = {
    event: 'f',
    uuid: '00000000-0000-4000-8000-00000000000f',
    person_id: ADA,
    person_properties: { email: 'then@x.io' },
    properties: { deep: { a: { b: 'c' } }, list: ['x', 'y', 'z'], flag: true },
    elements_chain: 'a.big:href="/docs"text="Go";div',
    session_id: 's1',
    group_0: 'acme',
  };
  await insertEvents(queryable, [
    { event: 'e', properties: { x: 'a', y: 1 }, person_id: ADA },
    { event: 'e', properties: { x: 'b', y: 2 }, distinct_id: 'user-2' },
    { event: 'e', properties: { y: 3 }, distinct_id: 'user-2' },
    { event: 'e', properties: { x: 'a', y: 4 }, person_id: null },
    f,
    { ...f, project_id: OTHER_PROJECT, properties: { secret: 'other project' } },
  ]);
  await queryable.query(`update hogql.events set person_id = '${ADA}' where properties ->> 'y' = '4'`);
  await queryable.query(
    `update hogql.events set person_id = null where event = 'f' and project_id = ${PROJECT}`,
  );
  await queryable.query(`update hogql.events set person_id = '${ADA}' where event = 'f'`);
  for (const [project, email] of [
    [PROJECT, 'ada@x.io'],
    [OTHER_PROJECT, 'secret@other.io'],
  ]) {
    const values = [project, ADA];
    await queryable.query(
      `insert into hogql.persons values ($1, $2, '2026-01-01', jsonb_build_object('email', $3::text), true)`,
      [...values, email],
    );
    await queryable.query(`insert into hogql.person_distinct_ids values ($1, 'user-1', $2)`, values);
    await queryable.query(
      `insert into hogql.groups values ($1, 0, 'acme', '2026-01-01', '2026-01-02', '{"name":"Acme"}')`,
      [project],
    );
    await queryable.query(
      `insert into hogql.sessions (project_id, session_id, distinct_id, start_timestamp, end_timestamp, pageview_count, entry_utm_source)
       values ($1, 's1', 'user-1', '2026-03-15', '2026-03-15', 3, 'ads')`,
      [project],
    );
    await queryable.query('insert into hogql.cohort_people values ($1, 5, $2)', values);
  }
}
