import { setTimeout as pause } from 'node:timers/promises';
import {
  DIGEST_SQL,
  type Hash,
  hashId,
  ID_BYTES,
  IdFilter,
  PARTS,
  SAMPLE,
  wordsFor,
} from './event-id-filters.ts';
import { LOCKS } from './locks.ts';
import { type LongWork, onConnection } from './on-connection.ts';
import type { Pool, Queryable, Transaction } from './pool.ts';
import { uuidBytes } from './uuid-bytes.ts';

/** How ids are sealed. Tests take smaller numbers. */
export interface SealingSizes {
  /** When event_ids has more ids, so many of them are sealed as one segment. */
  segment: number;
  /** At most so many segments in a row have a filter in common. A power of two. */
  together: number;
  /** A filter has so many rows. `event_id_part` of the database knows it too. */
  parts: number;
  /** So many ids are copied, or taken from event_ids, in one transaction. */
  slice: number;
  /** The index of event_ids is made anew when it has more bytes. A segment of random ids, and as many new ones, take half of it. */
  index: number;
}

export const SEALING_SIZES: SealingSizes = {
  ...{ segment: 4_000_000, together: 32, parts: PARTS, slice: 60 * 336 },
  index: 1_000_000_000,
};
/** So many ids fill a page of Postgres, with what else is in the row of a block. */
const BLOCK_IDS = 336;
/** Then a filter answers wrongly for about 0.1 % of other ids. */
const BITS_OF_ID = 16;
/** So much memory a filter takes while it is made. A larger one is made in parts, and its ids are read for each of them. */
const FILTER_BYTES = 67_108_864;
/** So many blocks are read at once for a filter, and so many of its rows are written. */
const BLOCKS_AT_ONCE = 100;
const ROWS_AT_ONCE = 1_024;
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
  while (!(await step()).filled) await paced(work, () => fill(client, number, sizes));
  if (!(await step()).sealed) {
    // The filter takes the place of those of the segments before, so that an id has few to ask.
    await makeFilter(client, rangeTo(number, sizes), work, sizes);
    await seal(client, number);
  }
  while (await paced(work, () => remove(client, number, sizes)));
  // Its index has pages to use again. Cutting off the end of the table would need a lock that writers wait for.
  await client.query('vacuum (truncate off, analyze) event_ids');
  return (await step()).ids;
}

/** Does a piece of work, and leaves writers some time for themselves. */
async function paced<T>({ signal, beat }: LongWork, piece: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  beat();
  const began = performance.now();
  const result = await piece();
  await pause((performance.now() - began) * REST, undefined, { signal }).catch(() => signal.throwIfAborted());
  return result;
}

async function inTransaction<T>(client: Transaction, run: () => Promise<T>): Promise<T> {
  await client.query('begin');
  try {
    const result = await run();
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
}

/** Copies the next ids in the order of their keys. The row of the segment stays locked, so two processes copy none twice. */
function fill(client: Transaction, number: number, { segment, slice }: SealingSizes): Promise<void> {
  return inTransaction(client, async () => {
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
  return inTransaction(client, async () => {
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
        values: [project, uuidsOf(ids)],
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

const UUID_OID = 2950;
const BIGINT_OID = 20;
const ARRAY_HEADER = 20;
const UUID_BYTES = 16;
const BIGINT_BYTES = 8;

/** An array in Postgres's binary form. Each of its elements is in `bytes`, at the beginning of a step. */
function arrayOf(oid: number, bytes: Buffer, size: number, step: number): Buffer {
  const count = bytes.length / step;
  const array = Buffer.alloc(ARRAY_HEADER + count * (4 + size));
  for (const [index, value] of [1, 0, oid, count, 1].entries()) array.writeInt32BE(value, index * 4);
  for (let index = 0; index < count; index += 1) {
    const at = ARRAY_HEADER + index * (4 + size);
    array.writeInt32BE(size, at);
    bytes.copy(array, at + 4, index * step, index * step + size);
  }
  return array;
}

const uuidsOf = (ids: Buffer): Buffer => arrayOf(UUID_OID, ids, UUID_BYTES, ID_BYTES);
const bigintsOf = (words: Buffer): Buffer => arrayOf(BIGINT_OID, words, BIGINT_BYTES, BIGINT_BYTES);

/** What the deletion of a project did not see: it was written by a slice that was under way, or by a process of an older version. */
async function deleteLeftovers(client: Transaction): Promise<void> {
  await client.query(
    `delete from event_id_blocks b using project_deletions d
     where b.project_id = d.project_id and d.data_deleted_at is not null`,
  );
}

/** The segments of a filter. Its number is that of the last one. */
interface FilterRange {
  first: number;
  last: number;
}

/**
 * Filters are merged as a binary number is counted: the first 25 segments have filters of 16, 8 and 1 of them. Each id is put
 * into a filter a few times, and with n segments an id asks the binary digits of n, not n filters.
 */
function rangeTo(last: number, { together }: SealingSizes): FilterRange {
  const size = Math.min(last & -last, together);
  return { first: last - size + 1, last };
}

/** The filters that sealed segments have. */
function rangesOf(segments: number, sizes: SealingSizes): FilterRange[] {
  const ranges: FilterRange[] = [];
  for (let last = segments; last > 0; last = (ranges[0] as FilterRange).first - 1)
    ranges.unshift(rangeTo(last, sizes));
  return ranges;
}

/** Makes the filters that are missing, and makes damaged ones again. Looks at one of them each time. */
async function keepFilters(client: Transaction, work: LongWork, sizes: SealingSizes): Promise<void> {
  try {
    await dropDamaged(client);
  } catch (error) {
    if (!DAMAGED.includes((error as { code?: string }).code as string)) throw error;
    await dropAllFilters(client);
  }
  const { rows } = await client.query(
    `select coalesce(max(number), 0) as last, array(select array[first_segment, number] from event_id_filter_sets) as made
     from event_id_segments where sealed_at is not null`,
  );
  const { last, made } = rows[0] as { last: number; made: [number, number][] };
  for (const range of rangesOf(last, sizes)) {
    if (!made.some(([first, number]) => first === range.first && number === range.last))
      await makeFilter(client, range, work, sizes);
  }
}

/** Pages of a table or an index are damaged. */
const DAMAGED = ['XX001', 'XX002'];

/** Takes all filters away without reading them. Writers would queue behind a lock that waits, so it waits shortly. */
async function dropAllFilters(client: Transaction): Promise<void> {
  await inTransaction(client, async () => {
    await client.query(`set local lock_timeout = '1s'`);
    await client.query('truncate event_id_filters, event_id_filter_sets');
  });
}

/** A filter that is no longer what it was when it was made is not asked any more, and made again. */
async function dropDamaged(client: Transaction): Promise<void> {
  const sample = sampleHash();
  const { rows: foreign } = await client.query(
    'select number from event_id_filter_sets where sample <> $1::bigint',
    [sample],
  );
  for (const { number } of foreign) await dropFilters(client, number, number);
  const { rows } = await client.query('select number, digest from event_id_filter_sets order by number');
  if (rows.length === 0) return;
  // One a minute, in turn.
  const { number, digest } = rows[Math.floor(Date.now() / 60_000) % rows.length];
  const { rows: found } = await client.query(
    `select ${DIGEST_SQL} as digest from event_id_filters where number = $1`,
    [number],
  );
  if (found[0].digest !== digest) await dropFilters(client, number, number);
}

async function dropFilters(client: Transaction, from: number, to: number): Promise<void> {
  await client.query(
    `with gone as (delete from event_id_filter_sets where number between $1 and $2)
     delete from event_id_filters where number between $1 and $2`,
    [from, to],
  );
}

function sampleHash(): string {
  const bytes = Buffer.alloc(UUID_BYTES);
  uuidBytes(SAMPLE.uuid, bytes, 0);
  const hash: Hash = { high: 0, low: 0 };
  hashId(bytes, 0, SAMPLE.projectId, hash);
  return BigInt.asIntN(64, (BigInt(hash.high) << 32n) | BigInt(hash.low)).toString();
}

/**
 * Makes a filter from the blocks of its segments. Nobody asks it before it is complete: its rows without their entry in
 * event_id_filter_sets mean nothing.
 */
async function makeFilter(
  client: Transaction,
  { first, last }: FilterRange,
  work: LongWork,
  { parts }: SealingSizes,
): Promise<void> {
  // What a kill has left, or what is to be made anew.
  await dropFilters(client, last, last);
  const { rows: counted } = await client.query(
    'select sum(ids)::float8 as ids from event_id_segments where number between $1 and $2',
    [first, last],
  );
  const words = wordsFor(counted[0].ids, BITS_OF_ID, parts);
  const pass = parts / 2 ** Math.max(0, Math.ceil(Math.log2((parts * words * 8) / FILTER_BYTES)));
  for (let from = 0; from < parts; from += pass) {
    const filter = new IdFilter(words, { from, to: from + pass, all: parts });
    for (let segment = first; segment <= last; segment += 1) await addSegment(client, filter, segment, work);
    const rows = Math.min(ROWS_AT_ONCE, pass);
    for (let part = from; part < from + pass; part += rows) {
      work.signal.throwIfAborted();
      work.beat();
      await client.query(
        `insert into event_id_filters (part, number, bits)
         select $1::int + place, $2, ($3::bigint[])[place * $4 + 1 : (place + 1) * $4] from generate_series(0, $5::int - 1) as place`,
        [part, last, bigintsOf(filter.parts(part, rows)), words, rows],
      );
    }
  }
  await inTransaction(client, async () => {
    // The filters that it takes the place of.
    await dropFilters(client, first, last - 1);
    await client.query(
      `insert into event_id_filter_sets (number, first_segment, sample, digest)
       select $1, $2, $3, ${DIGEST_SQL} from event_id_filters where number = $1`,
      [last, first, sampleHash()],
    );
  });
}

async function addSegment(
  client: Transaction,
  filter: IdFilter,
  segment: number,
  { signal, beat }: LongWork,
): Promise<void> {
  let after = { project_id: -(2 ** 31), first: '00000000-0000-0000-0000-000000000000' };
  for (;;) {
    signal.throwIfAborted();
    beat();
    const { rows } = await client.query({
      text: `select project_id, first, ids from event_id_blocks
        where segment = $1 and (project_id, first) > ($2, $3) order by project_id, first limit ${BLOCKS_AT_ONCE}`,
      values: [segment, after.project_id, after.first],
    });
    for (const { project_id: project, ids } of rows) filter.addBlock(project, ids);
    if (rows.length < BLOCKS_AT_ONCE) return;
    after = rows.at(-1);
  }
}
