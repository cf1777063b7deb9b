import type { Pool } from '../../db/pool.ts';
import type { Asker } from '../../db/turns.ts';
import { IS_SMALL, newestEvents } from './newest.ts';
import { readRows } from './rows.ts';

const DAYS = 30;
/** So many events of the names are read, and so many properties told. */
const MOST_READ = 1_000;
const MOST_NAMES = 10_000;

/** Reads which properties the newest events of some names have, as the role that sees the rows of one project only. */
export async function readEventProperties(
  reader: Pool,
  asker: Asker,
  events: readonly string[],
): Promise<string[]> {
  const text = `
    select name, 0 from (
      select distinct json_object_keys(properties) as name from (
        select properties from ${newestEvents('$1::int', `now() - interval '${DAYS} days'`)}
        where event = any($2::text[]) and ${IS_SMALL} limit ${MOST_READ}) as read
      limit ${MOST_NAMES}) as named`;
  const values = [String(asker.projectId), [...events]];
  const { rows } = await readRows(reader, asker, { text, values, width: 1 });
  return rows.map(([name]) => name as string);
}
