import { RANGE_PAGES, SEALED, SEARCH, type WeekIndex } from './event-indexes.ts';
import { listEventPartitions } from './event-partitions.ts';
import { WEEK_MILLISECONDS } from './event-spans.ts';
import { storedBefore } from './horizon.ts';
import { LOCKS } from './locks.ts';
import { type LongWork, onConnection } from './on-connection.ts';
import type { Pool, Transaction } from './pool.ts';

/** So many ranges are read in one statement. */
const RANGES_AT_ONCE = 200;
/** Of more weeks of one project's events in one partition, nothing is noted. */
const MOST_WEEKS = 200;
/**
 * Tells the indexes of open weeks what was stored since the last time. Ranges at the end of a table are left out: what they
 * still get would cost ingestion more if they were known. Returns how many ranges were read.
 */
export async function summarizeOpenWeeks(pool: Pool, { signal, beat }: LongWork): Promise<number> {
  let read = 0;
  const { rows } = await pool.query(
    `select c.relname as partition, coalesce(w.summarized, 0) as begin,
       pg_relation_size(c.oid) / current_setting('block_size')::int / ${RANGE_PAGES} * ${RANGE_PAGES} - ${RANGE_PAGES} as end
     from pg_inherits i join pg_class c on c.oid = i.inhrelid left join event_weeks w on w.partition = c.relname
     where i.inhparent = 'events'::regclass and w.sealed_at is null and to_regclass(c.relname || '_${SEARCH.name}') is not null
     order by 1`,
  );
  for (const week of rows as { partition: string; begin: number; end: number }[]) {
    for (let begin = week.begin; begin < week.end; ) {
      signal.throwIfAborted();
      beat();
      const end = Math.min(begin + RANGES_AT_ONCE * RANGE_PAGES, week.end);
      const { rows: sums } = await pool.query(
        `select sum(brin_summarize_range($1::regclass, block))::int as ranges
         from generate_series($2::bigint, $3::bigint - 1, ${RANGE_PAGES}) as block`,
        [`${week.partition}_${SEARCH.name}`, begin, end],
      );
      read += sums[0].ranges ?? 0;
      await pool.query(
        `insert into event_weeks (partition, summarized) values ($1, $2)
         on conflict (partition) do update set summarized = excluded.summarized`,
        [week.partition, end],
      );
      begin = end;
    }
  }
  return read;
}

/**
 * Gives the weeks that are over their indexes, and notes which times the events of each project have there. Ingestion and readers
 * go on meanwhile. Work that was ended in the middle begins again. Returns how many weeks were sealed.
 */
export async function sealEventWeeks(pool: Pool, work: LongWork): Promise<number> {
  if ((await weeksToSeal(pool)).length === 0) return 0;
  return onConnection(pool, work, async (client) => {
    const { rows } = await client.query('select pg_try_advisory_lock($1) as mine', [LOCKS.sealing]);
    if (!rows[0].mine) return 0;
    // Another process may have sealed some until now. The newest first: they are asked for most.
    const over = (await weeksToSeal(pool)).toReversed();
    for (const partition of over) {
      work.signal.throwIfAborted();
      await seal(client, partition);
    }
    return over.length;
  });
}

/** Lists the weeks that get no more events, and have not all of their indexes. */
async function weeksToSeal(pool: Pool): Promise<string[]> {
  // A restored database has the notes of its weeks, and not their indexes.
  const { rows } = await pool.query(
    `select w.partition from event_weeks w where w.sealed_at is not null and not exists (
       select from unnest($1::text[]) as name left join pg_index i on i.indexrelid = to_regclass(w.partition || '_' || name)
       where i.indisvalid is not true)`,
    [SEALED.map(({ name }) => name)],
  );
  const sealed = new Set(rows.map((row) => row.partition as string));
  const end = Date.parse(await storedBefore(pool));
  const weeks = await listEventPartitions(pool);
  return weeks.filter(({ name, to }) => to.getTime() <= end && !sealed.has(name)).map(({ name }) => name);
}

async function seal(client: Transaction, partition: string): Promise<void> {
  for (const index of SEALED) await buildIndex(client, partition, index);
  await client.query(`analyze ${partition}`);
  await client.query('begin');
  // Nobody drops the partition before its rows of these tables are there: whoever drops it deletes them.
  await client.query(`lock table ${partition} in access share mode`);
  await client.query(
    `insert into event_spans (project_id, partition, weeks)
     select project_id, $1, case when count(*) <= $2 then array_agg(week order by week) end from (
       select distinct project_id, floor(extract(epoch from timestamp) / $3)::integer as week from ${partition}) as found
     group by project_id
     on conflict (project_id, partition) do update set weeks = excluded.weeks`,
    [partition, MOST_WEEKS, WEEK_MILLISECONDS / 1000],
  );
  await client.query(
    `insert into event_weeks (partition, sealed_at) values ($1, now())
     on conflict (partition) do update set sealed_at = excluded.sealed_at`,
    [partition],
  );
  await client.query('commit');
}

/** Builds an index that is not there. One that is not valid was left by a build that was ended. */
async function buildIndex(client: Transaction, partition: string, { name, of }: WeekIndex): Promise<void> {
  const index = `${partition}_${name}`;
  const { rows } = await client.query(
    'select indisvalid as valid from pg_index where indexrelid = to_regclass($1)',
    [index],
  );
  if (rows[0]?.valid) return;
  if (rows[0]) await client.query(`drop index concurrently ${index}`);
  await client.query(`create index concurrently ${index} on ${partition} ${of}`);
}
