import { containsPattern } from '../../db/like.ts';
import type { Pool } from '../../db/pool.ts';
import type { Asker } from '../../db/turns.ts';
import { databaseZone } from '../../values/zones.ts';
import { MOST_VALUES, type ValuesRequest } from '../rules/values.ts';
import { IS_SMALL, newestEvents } from './newest.ts';
import { readRows } from './rows.ts';

const DAYS = 7;
/** Larger lists and values are passed over. */
const LIST_BYTES = 64 * 1024;
const VALUE_BYTES = 1_000;

/** Reads the shortest values, as the role that sees the rows of one project only. */
export async function readValues(
  reader: Pool,
  asker: Asker,
  { key, isColumn, search, events, conditions }: ValuesRequest,
  timezone: string,
): Promise<string[]> {
  const values: (string | string[])[] = [];
  const given = (value: string | string[], type: string) => `$${values.push(value)}::${type}`;
  const zone = given(databaseZone(timezone), 'text');
  const since = `(date_trunc('day', now() at time zone ${zone}) - interval '${DAYS} days') at time zone ${zone}`;
  const newest = newestEvents(given(String(asker.projectId), 'int'), since);
  const wanted = [IS_SMALL];
  if (events.length > 0) wanted.push(`event = any(${given([...events], 'text[]')})`);
  for (const { name, values: some } of conditions) {
    wanted.push(`lower(properties ->> ${given(name, 'text')}) = any(${given([...some], 'text[]')})`);
  }
  const found = isColumn ? `to_json(${key})` : `properties -> ${given(key, 'text')}`;
  const matches = search === '' ? '' : `and value ilike ${given(containsPattern(search), 'text')}`;
  const text = `
    select value, 0 from (
      select value from (
        select json_array_elements_text(case json_typeof(found) when 'array' then found else json_build_array(found) end) as value
        from (
          select ${found} as found from ${newest}
          where ${wanted.join(' and ')}) as read
        where octet_length(found::text) <= ${LIST_BYTES}) as listed
      where octet_length(value) <= ${VALUE_BYTES} ${matches}
      group by value order by length(value), value collate "C" limit ${MOST_VALUES}) as shortest`;
  const { rows } = await readRows(reader, asker, { text, values, width: 1 });
  return rows.map(([value]) => value as string);
}

/** So many persons are looked at, and so many of their values are told. */
const MOST_PERSONS = 100_000;
const MOST_OF_PERSONS = 20;

/** Reads the most frequent values of a property of persons, as the role that sees the rows of one project only. */
export async function readPersonValues(
  reader: Pool,
  asker: Asker,
  { key, search }: { key: string; search: string },
): Promise<{ name: string; count: number }[]> {
  const values: string[] = [];
  const given = (value: string, type: string) => `$${values.push(value)}::${type}`;
  const project = given(String(asker.projectId), 'int');
  const found = `properties -> ${given(key, 'text')}`;
  const matches = search === '' ? '' : `and value ilike ${given(containsPattern(search), 'text')}`;
  const text = `
    select to_json(value)::text, count::text from (
      select value, count(*) as count from (
        select jsonb_array_elements_text(case jsonb_typeof(found) when 'array' then found else jsonb_build_array(found) end) as value
        from (
          select ${found} as found from persons where project_id = ${project}
          order by created_at desc, id desc limit ${MOST_PERSONS}) as newest
        where octet_length(found::text) <= ${LIST_BYTES}) as listed
      where octet_length(value) <= ${VALUE_BYTES} ${matches}
      group by value order by count(*) desc, value collate "C" limit ${MOST_OF_PERSONS}) as frequent`;
  const { rows } = await readRows(reader, asker, { text, values, width: 2 });
  return rows.map(([name, count]) => ({ name: JSON.parse(name as string), count: Number(count) }));
}
