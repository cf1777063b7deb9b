import { uuidsWithin } from './binary-arrays.ts';
import { FILTER_SIZES, type FilterSizes, keepFilters, makeFilter } from './event-id-filter-sets.ts';
import { ID_BYTES } from './event-id-filters.ts';
import { LOCKS } from './locks.ts';
import { type LongWork, onConnection, paced } from './on-connection.ts';
import { type Pool, type Queryable, type Transaction, within } from './pool.ts';

/** How ids are sealed. Tests take smaller numbers. */
export interface SealingSizes extends FilterSizes {
  /** When event_ids has more ids, so many of them are sealed as one segment. */
  segment: number;
  /** So many ids are copied, or taken from event_ids, in one transaction. */
  slice: number;
  /** The index of event_ids is made anew when it has more bytes. A segment of random ids, and as many new ones, take half of it. */
  index: number;
}

export const SEALING_SIZES: SealingSizes = {
  ...FILTER_SIZES,
  ...{ segment: 4_000_000, slice: 60 * 336, index: 1_000_000_000 },
};
/** So many ids fill a page of Postgres, with what else is in the row of a block. */
const BLOCK_IDS = 336;
/** So many ids are counted at once. For more, an estimate has to say that it is worth it. */
const COUNTED = 100_000;
/** After each slice of work, writers have so many times its duration for themselves. */
const REST = 0.25;

interface Segment {
  number: number;
  ids: number;
  filled: boolean;
  sealed: boolean;
}

/**
 * Moves ids from event_ids into sealed blocks, as long as there are more than `sizes.segment`, and keeps the filters complete.
 * Each step is a transaction of its own, and what is left of it in the database says where the next one goes on: so this may be
 * ended at any point, by a kill too. Returns how many ids were sealed.
 *
 * An id is taken from event_ids only after the segment that has it is sealed, that is, asked by writers. A writer asks event_ids
 * first and the segments after that, each with what is committed then. So it finds the id in one of the two, whatever happens
 * meanwhile, and no lock is needed that a writer would wait for.
 */
export async function sealEventIds(pool: Pool, work: LongWork, sizes = SEALING_SIZES): Promise<number> {
  if (!(await hasWork(pool, sizes))) return 0;
  return onConnection(pool, work, (client) =>
    alone(client, async () => {
      let sealed = 0;
      // Each statement knows where its rows are, whatever Postgres believes of the sizes of tables.
      await client.query('set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off');
      await deleteLeftovers(client);
      for (;;) {
        work.signal.throwIfAborted();
        const open = await openSegment(client);
        if (open === undefined && !(await isFull(client, sizes))) break;
        sealed += await sealSegment(client, open ?? (await beginSegment(client)), work, sizes);
      }
      await keepFilters(client, work, sizes);
      await keepIndexSmall(client, sizes);
      return sealed;
    }),
  );
}

/** Runs if no other process does this. The rows of segments are locked too: this only saves work. */
async function alone(client: Transaction, run: () => Promise<number>): Promise<number> {
  const { rows } = await client.query('select pg_try_advisory_lock($1) as mine', [LOCKS.ids]);
  if (!rows[0].mine) return 0;
  try {
    return await run();
  } finally {
    // At once, so that the next one finds it free. It also goes with the connection.
    await client.query('select pg_advisory_unlock($1)', [LOCKS.ids]).catch(() => undefined);
  }
}

async function hasWork(pool: Pool, sizes: SealingSizes): Promise<boolean> {
  if (await isFull(pool, sizes)) return true;
  const { rows } = await pool.query('select exists (select from event_id_segments) as some');
  return rows[0].some;
}

/** Whether event_ids has enough ids for a segment. Counting would take long, so Postgres's own estimate goes first. */
async function isFull(queryable: Queryable, { segment }: SealingSizes): Promise<boolean> {
  const { rows } = await queryable.query(
    `select greatest(reltuples, pg_stat_get_live_tuples(oid)) as estimate from pg_class where oid = 'event_ids'::regclass`,
  );
  if (segment > COUNTED && rows[0].estimate <= segment) return false;
  const { rows: counted } = await queryable.query(
    'select count(*)::int as count from (select from event_ids limit $1) as ids',
    [segment + 1],
  );
  return counted[0].count > segment;
}

async function openSegment(client: Transaction): Promise<number | undefined> {
  const { rows } = await client.query(
    'select number from event_id_segments where removed_at is null order by number limit 1',
  );
  return rows[0]?.number;
}

async function beginSegment(client: Transaction): Promise<number> {
  const { rows } = await client.query(
    'insert into event_id_segments (number) select coalesce(max(number), 0) + 1 from event_id_segments returning number',
  );
  return rows[0].number;
}

async function readSegment(client: Transaction, number: number): Promise<Segment> {
  const { rows } = await client.query(
    `select number, ids, filled_at is not null as filled, sealed_at is not null as sealed
     from event_id_segments where number = $1`,
    [number],
  );
  return rows[0];
}

/** Does what is left to do with a segment. Returns how many ids it has. */
async function sealSegment(
  client: Transaction,
  number: number,
  work: LongWork,
  sizes: SealingSizes,
): Promise<number> {
  const step = () => readSegment(client, number);
  while (!(await step()).filled) await paced(work, () => fill(client, number, sizes), REST);
  if (!(await step()).sealed) {
    // The filter takes the place of those of the segments before, so that an id has few to ask.
    await makeFilter(client, number, work, sizes);
    await seal(client, number);
  }
  while (await paced(work, () => remove(client, number, sizes), REST));
  // Its index has pages to use again. Cutting off the end of the table would need a lock that writers wait for.
  await client.query('vacuum (truncate off, analyze) event_ids');
  return (await step()).ids;
}

/** Copies the next ids in the order of their keys. The row of the segment stays locked, so two processes copy none twice. */
function fill(client: Transaction, number: number, { segment, slice }: SealingSizes): Promise<void> {
  return within(client, async () => {
    const { rows: found } = await client.query(
      `select ids, last_project, last_uuid from event_id_segments where number = $1 and filled_at is null for update`,
      [number],
    );
    if (!found[0]) return;
    const { ids, last_project: project, last_uuid: uuid } = found[0];
    const most = Math.min(slice, segment - ids);
    const { rows } = await client.query(
      `with ids as materialized (
         select project_id, uuid, timestamp from event_ids where (project_id, uuid) > ($2::int, $3::uuid)
         order by project_id, uuid limit $4),
       placed as (
         select *, (row_number() over (partition by project_id order by uuid) - 1) / ${BLOCK_IDS} as block from ids),
       written as (
         insert into event_id_blocks (segment, project_id, first, ids)
         select $1::int, project_id, (array_agg(uuid order by uuid))[1],
           string_agg(uuid_send(uuid) || timestamptz_send(timestamp), ''::bytea order by uuid)
         from placed group by project_id, block)
       select count(*)::int as count, max(project_id) as project,
         (array_agg(uuid order by project_id desc, uuid desc))[1] as uuid from ids`,
      [number, project, uuid, most],
    );
    const { count, project: lastProject, uuid: lastUuid } = rows[0];
    await client.query(
      `update event_id_segments set ids = ids + $2, last_project = coalesce($3, last_project),
         last_uuid = coalesce($4, last_uuid), filled_at = case when $5 then clock_timestamp() end
       where number = $1`,
      [number, count, lastProject, lastUuid, count < most || ids + count >= segment],
    );
  });
}

/** From here on, writers and readers ask the segment. */
async function seal(client: Transaction, number: number): Promise<void> {
  await client.query(
    'update event_id_segments set sealed_at = clock_timestamp() where number = $1 and filled_at is not null',
    [number],
  );
}

/** Takes ids from event_ids that are in the next blocks of a sealed segment. Returns whether there may be more. */
function remove(client: Transaction, number: number, { slice }: SealingSizes): Promise<boolean> {
  return within(client, async () => {
    const { rows: found } = await client.query(
      `select removed_project, removed_uuid from event_id_segments
       where number = $1 and sealed_at is not null and removed_at is null for update`,
      [number],
    );
    if (!found[0]) return false;
    const most = Math.max(1, Math.floor(slice / BLOCK_IDS));
    const { rows: blocks } = await client.query({
      text: `select project_id, first, ids from event_id_blocks
        where segment = $1 and (project_id, first) > ($2, $3) order by project_id, first limit $4`,
      values: [number, found[0].removed_project, found[0].removed_uuid, most],
    });
    for (const { project_id: project, ids } of blocks) {
      await client.query({
        name: 'remove-event-ids',
        text: 'delete from event_ids where project_id = $1 and uuid = any($2)',
        values: [project, uuidsWithin(ids, ID_BYTES)],
      });
    }
    const last = blocks.at(-1);
    await client.query(
      `update event_id_segments set removed_project = coalesce($2, removed_project),
         removed_uuid = coalesce($3, removed_uuid), removed_at = case when $4 then clock_timestamp() end
       where number = $1`,
      [number, last?.project_id ?? null, last?.first ?? null, blocks.length < most],
    );
    return blocks.length === most;
  });
}

/**
 * Makes the index of event_ids anew after most of a large table was sealed, in an installation of before: its pages lie apart, and
 * new ids would be spread over all of them. Writers go on meanwhile.
 */
async function keepIndexSmall(client: Transaction, { index }: SealingSizes): Promise<void> {
  const { rows: left } = await client.query(
    `select indexrelid::regclass as name from pg_index
     where indrelid = 'event_ids'::regclass and not indisvalid and indexrelid::regclass::text like 'event_ids_pkey_cc%'`,
  );
  // What a kill left of the last attempt.
  for (const { name } of left) await client.query(`drop index concurrently if exists ${name}`);
  const { rows } = await client.query(`select pg_relation_size('event_ids_pkey') as bytes`);
  if (rows[0].bytes <= index) return;
  await client.query('reindex index concurrently event_ids_pkey');
}

/** What the deletion of a project did not see: it was written by a slice that was under way, or by a process of an older version. */
async function deleteLeftovers(client: Transaction): Promise<void> {
  await client.query(
    `delete from event_id_blocks b using project_deletions d
     where b.project_id = d.project_id and d.data_deleted_at is not null`,
  );
}
