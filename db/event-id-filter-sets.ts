import { int8sWithin } from './binary-arrays.ts';
import { DIGEST_SQL, IdFilter, PARTS, sampleHash, wordsFor } from './event-id-filters.ts';
import type { LongWork } from './on-connection.ts';
import { type Transaction, within } from './pool.ts';

/** How filters are made. Tests take smaller numbers. */
export interface FilterSizes {
  /** At most so many segments in a row have a filter in common. A power of two. */
  together: number;
  /** A filter has so many rows. `event_id_part` of the database knows it too. */
  parts: number;
  /** So many seconds after it was compared with its digest, a filter is compared again. */
  recheck: number;
}

export const FILTER_SIZES: FilterSizes = { together: 32, parts: PARTS, recheck: 3_600 };
/** Then a filter answers wrongly for about 0.1 % of other ids. */
const BITS_OF_ID = 16;
/** So much memory a filter takes while it is made. A larger one is made in parts, and its ids are read for each of them. */
const FILTER_BYTES = 67_108_864;
/** So many blocks are read at once for a filter, and so many of its rows are written. */
const BLOCKS_AT_ONCE = 100;
const ROWS_AT_ONCE = 1_024;

/** The segments of a filter. Its number is that of the last one. */
interface FilterRange {
  first: number;
  last: number;
}

/**
 * Filters are merged as a binary number is counted: the first 25 segments have filters of 16, 8 and 1 of them. Each id is put
 * into a filter a few times, and with n segments an id asks the binary digits of n, not n filters.
 */
function rangeTo(last: number, { together }: FilterSizes): FilterRange {
  const size = Math.min(last & -last, together);
  return { first: last - size + 1, last };
}

/** The filters that sealed segments have. */
function rangesOf(segments: number, sizes: FilterSizes): FilterRange[] {
  const ranges: FilterRange[] = [];
  for (let last = segments; last > 0; last = (ranges[0] as FilterRange).first - 1)
    ranges.unshift(rangeTo(last, sizes));
  return ranges;
}

/** Makes the filter whose last segment this is. It takes the place of those of the segments before, so that an id has few to ask. */
export const makeFilter = (
  client: Transaction,
  last: number,
  work: LongWork,
  sizes: FilterSizes,
): Promise<void> => makeRange(client, rangeTo(last, sizes), work, sizes);

/** Makes the filters that are missing, and makes damaged ones again. Looks at one of them at most. */
export async function keepFilters(client: Transaction, work: LongWork, sizes: FilterSizes): Promise<void> {
  try {
    await dropDamaged(client, sizes);
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
      await makeRange(client, range, work, sizes);
  }
}

/** Pages of a table or an index are damaged. */
const DAMAGED = ['XX001', 'XX002'];

/** Takes all filters away without reading them. Writers would queue behind a lock that waits, so it waits shortly. */
async function dropAllFilters(client: Transaction): Promise<void> {
  await within(client, async () => {
    await client.query(`set local lock_timeout = '1s'`);
    await client.query('truncate event_id_filters, event_id_filter_sets');
  });
}

/** A filter that is no longer what it was when it was made is not asked any more, and made again. */
async function dropDamaged(client: Transaction, { recheck }: FilterSizes): Promise<void> {
  const { rows: foreign } = await client.query(
    'select number from event_id_filter_sets where sample <> $1::bigint',
    [sampleHash()],
  );
  for (const { number } of foreign) await dropFilters(client, number, number);
  const { rows } = await client.query(
    `update event_id_filter_sets set looked_at = clock_timestamp() where number = (
       select number from event_id_filter_sets where looked_at <= clock_timestamp() - make_interval(secs => $1)
       order by looked_at limit 1)
     returning number, digest`,
    [recheck],
  );
  if (rows.length === 0) return;
  const { number, digest } = rows[0];
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

/**
 * Makes a filter from the blocks of its segments. Nobody asks it before it is complete: its rows without their entry in
 * event_id_filter_sets mean nothing.
 */
async function makeRange(
  client: Transaction,
  { first, last }: FilterRange,
  work: LongWork,
  { parts }: FilterSizes,
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
        [part, last, int8sWithin(filter.parts(part, rows)), words, rows],
      );
    }
  }
  await within(client, async () => {
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
