import { randomBytes, randomUUID } from 'node:crypto';
import { open } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createIngest, type Ingest } from '../../capture/ingest.ts';
import { type Hash, hashId, IdFilter } from '../../db/event-id-filters.ts';
import { type SealingSizes, sealEventIds } from '../../db/event-id-sealing.ts';
import { findEvent } from '../../db/events.ts';
import { createPool, type Pool } from '../../db/pool.ts';
import { deleteProjectRows } from '../../db/project-data.ts';
import { CORE_TABLES } from '../../db/project-tables.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { uuidBytes } from '../../db/uuid-bytes.ts';
import { capturedEvent, census } from '../capture/support.ts';
import { databaseForFile } from '../support/database.ts';
import { FEW_PARTS, FEW_PARTS_SQL, KNOWN_IDS, TWICE } from '../support/event-ids.ts';
import { rounds } from '../support/rounds.ts';

const database = databaseForFile();
/** Blocks of some projects are full, and those of others are not. */
const SIZES: SealingSizes = {
  ...{ segment: 800, slice: 500, index: 1_000_000_000 },
  ...{ together: 2, parts: FEW_PARTS, recheck: 0 },
};
let pool: Pool;
let ingest: Ingest;
let project = 100;

beforeAll(async () => {
  await database.pool.query(FEW_PARTS_SQL);
  pool = createPool({ url: database.url, size: 4, name: 'ingest' });
  ingest = createIngest({ pool });
});
afterAll(async () => {
  await ingest?.close();
  await pool?.end();
});
beforeEach(async () => {
  project += 10;
  await database.pool.query(
    'truncate events, event_ids, event_id_segments, event_id_blocks, event_id_filters, event_id_filter_sets',
  );
});

const work = (signal = new AbortController().signal, beat: () => void = () => undefined) => ({
  signal,
  beat,
});
const seal = (sizes = SIZES) => sealEventIds(database.pool, work(), sizes);
const numbers = async (sql: string): Promise<number[]> =>
  (await database.pool.query(sql)).rows.map((row) => row.number);
const count = async (table: string) =>
  (await database.pool.query(`select count(*)::int as count from ${table}`)).rows[0].count;
const filters = () => numbers('select number from event_id_filter_sets order by number');

/** Stores events with these uuids, and returns the uuids. */
async function store(uuids: readonly string[], projectId = project): Promise<readonly string[]> {
  await ingest.submit({ projectId, events: uuids.map((uuid) => capturedEvent({ uuid })) });
  return uuids;
}
const some = (many: number, make: () => string = randomUUID) => Array.from({ length: many }, make);
/** Sends events again, in requests of different sizes. None of them may be stored. */
async function resend(uuids: readonly string[], projectId = project) {
  let duplicates = 0;
  for (let from = 0, size = 1; from < uuids.length; from += size, size = size * 3 + 1) {
    const events = uuids.slice(from, from + size).map((uuid) => capturedEvent({ uuid }));
    const result = await ingest.submit({ projectId, events });
    expect(result.stored).toBe(0);
    duplicates += result.duplicates;
  }
  return duplicates;
}
/** Makes 2,500 events, of which 2,400 are sealed in three segments, with a filter of the first two and one of the third. */
async function sealedEvents() {
  const uuids = await store([...some(2_000), ...some(500, uuidv7)]);
  expect(await seal({ ...SIZES, segment: 800 })).toBe(2_400);
  expect(await count('event_ids')).toBe(100);
  expect(await filters()).toEqual([2, 3]);
  return uuids;
}

describe('hashes', () => {
  test('are those of Postgres', async () => {
    const given = [
      ...Array.from({ length: rounds(2_000, 50_000) }, () => [
        randomBytes(4).readUInt32BE() >>> 1,
        randomUUID(),
      ]),
      ...[
        [0, randomUUID()],
        [0, '00000000-0000-0000-0000-000000000000'],
      ],
      ...[
        [1, 'ffffffff-ffff-ffff-ffff-ffffffffffff'],
        [2 ** 31 - 1, uuidv7()],
      ],
    ] as [number, string][];
    const { rows } = await database.pool.query(
      'select uuid_hash_extended(uuid, project)::text as hash from unnest($1::int[], $2::uuid[]) with ordinality as u (project, uuid, at) order by at',
      [given.map(([projectId]) => projectId), given.map(([, uuid]) => uuid)],
    );
    const hash: Hash = { high: 0, low: 0 };
    const own = given.map(([projectId, uuid]) => {
      const bytes = Buffer.alloc(16);
      uuidBytes(uuid, bytes, 0);
      hashId(bytes, 0, projectId, hash);
      return BigInt.asIntN(64, (BigInt(hash.high) << 32n) | BigInt(hash.low)).toString();
    });
    expect(own).toEqual(rows.map((row) => row.hash));
  });

  test('find each id in its filter as Postgres does, and few others', async () => {
    const [ids, others] = [some(500), some(3_000)];
    const block = Buffer.alloc(24 * ids.length);
    for (const [index, uuid] of ids.entries()) uuidBytes(uuid, block, index * 24);
    // Both halves together are the whole.
    const half = FEW_PARTS / 2;
    for (const from of [0, half]) {
      const filter = new IdFilter(2, { from, to: from + half, all: FEW_PARTS });
      filter.addBlock(7, block);
      const rows = Array.from({ length: half }, (_, index) => {
        const part = filter.parts(from + index, 1);
        return `{${part.readBigInt64BE(0)},${part.readBigInt64BE(8)}}`;
      });
      await database.pool.query(
        `insert into event_id_filters (part, number, bits)
         select $1::int + place - 1, 1, bits::bigint[] from unnest($2::text[]) with ordinality as part (bits, place)`,
        [from, rows],
      );
    }
    const found = async (uuids: readonly string[]) => {
      const { rows } = await database.pool.query(
        'select count(distinct place)::int as found from filtered_event_ids(array_fill(7, array[cardinality($1::uuid[])]), $1::uuid[])',
        [uuids],
      );
      return rows[0].found;
    };
    expect(await found(ids)).toBe(ids.length);
    expect(await found(others)).toBeLessThan(60);
  });
});

describe('ids that are sealed', () => {
  test('are taken from the table, in blocks by projects, and none is stored again', async () => {
    const [a, b, c] = [project, project + 1, project + 2];
    const uuids = [await store(some(1_500), a), await store(some(700, uuidv7), b), await store(some(3), c)];
    expect(await seal()).toBe(1_600);
    expect(await count('event_ids')).toBe(603);
    const { rows } = await database.pool.query(
      `select number, ids, removed_at is not null as done from event_id_segments order by number`,
    );
    expect(rows).toEqual([1, 2].map((number) => ({ number, ids: 800, done: true })));
    for (const [index, projectId] of [a, b, c].entries()) {
      const known = await census(database.pool, projectId);
      expect(known).toEqual({ uuids: new Set(uuids[index]), wrong: [] });
      expect(await resend(uuids[index] as string[], projectId)).toBe(uuids[index]?.length);
    }
    // The same uuids in another project are other events.
    await store((uuids[0] as string[]).slice(0, 50), c);
    expect((await census(database.pool, c)).uuids.size).toBe(53);
    expect((await database.pool.query(TWICE)).rows).toEqual([]);
  });

  test('lead to their events, whatever their times are', async () => {
    const times = [
      ...[-62_135_596_800_000, -1, 0, 1, 946_684_799_999, 946_684_800_000, 1_783_000_000_123],
      ...[4_102_444_800_000, 253_402_300_799_999],
    ];
    const events = times.map((timestamp) => capturedEvent({ uuid: randomUUID(), timestamp }));
    await ingest.submit({ projectId: project, events });
    const before = await Promise.all(
      events.map(({ uuid }) => findEvent(database.pool, { projectId: project }, uuid)),
    );
    await store(some(1_000));
    await seal({ ...SIZES, segment: 500 });
    await seal({ ...SIZES, segment: 1 });
    expect(await count('event_ids')).toBeLessThan(2);
    for (const [index, { uuid }] of events.entries()) {
      const found = await findEvent(database.pool, { projectId: project }, uuid);
      expect(found?.uuid).toBe(uuid);
      expect(found).toEqual(before[index]);
    }
    expect(await findEvent(database.pool, { projectId: project }, randomUUID())).toBeUndefined();
    expect(
      await findEvent(database.pool, { projectId: project + 1 }, events[0]?.uuid as string),
    ).toBeUndefined();
  });

  test('of version 7 may lie about their time', async () => {
    const lying = (time: number) => {
      const bytes = Buffer.from(randomUUID().replaceAll('-', ''), 'hex');
      bytes.writeUIntBE(time, 0, 6);
      bytes[6] = 0x70 | ((bytes[6] as number) & 15);
      return bytes.toString('hex').replace(/(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    };
    const uuids: string[] = [];
    for (const time of [0, 2 ** 48 - 1, Date.UTC(2099, 0), Date.UTC(1999, 0), Date.now()]) {
      uuids.push(...(await store(some(400, () => lying(time)))));
      await seal({ ...SIZES, segment: 300 });
    }
    expect(await resend(uuids)).toBe(2_000);
    expect((await census(database.pool, project)).wrong).toEqual([]);
  });

  test('are told to a process of an older version, which stores none of its events', async () => {
    const uuids = await sealedEvents();
    const { rows } = await database.pool.query(`select uuid from ${KNOWN_IDS} where segment > 0 limit 1`);
    expect(uuids).toContain(rows[0].uuid);
    // Its statements after a COPY that was refused, and instead of one.
    for (const conflict of ['', 'on conflict do nothing']) {
      const inserting = database.pool.query(
        `insert into event_ids (project_id, uuid, timestamp) values ($1, $2, now()), ($1, $3, now()) ${conflict}`,
        [project, randomUUID(), rows[0].uuid],
      );
      // A code for which it waits and tries again; what it refuses for good would be lost.
      await expect(inserting).rejects.toMatchObject({ code: '40001', table: 'event_ids' });
    }
    expect(await count('event_ids')).toBe(100);
  });

  test('are deleted with their project, also what was written after that', async () => {
    const other = project + 1;
    await store(some(900), other);
    await store(some(900));
    await seal({ ...SIZES, segment: 300 });
    const left = async (projectId: number) =>
      (
        await database.pool.query(`select count(*)::int as ids from ${KNOWN_IDS} where project_id = $1`, [
          projectId,
        ])
      ).rows[0].ids;
    expect([await left(project), await left(other)]).toEqual([900, 900]);
    const block = await database.pool.query('select * from event_id_blocks where project_id = $1 limit 1', [
      project,
    ]);
    for await (const _ of deleteProjectRows(database.pool, project, 5, CORE_TABLES));
    expect([await left(project), await left(other)]).toEqual([0, 900]);
    await database.pool.query(
      `insert into project_deletions (project_id, organization_id, data_deleted_at) values ($1, gen_random_uuid(), now())`,
      [project],
    );
    const { segment, first, ids } = block.rows[0];
    await database.pool.query('insert into event_id_blocks values ($1, $2, $3, $4)', [
      segment,
      project,
      first,
      ids,
    ]);
    await seal();
    expect([await left(project), await left(other)]).toEqual([0, 900]);
  });

  test('a dump that began before sees them all, and holds up neither writers nor sealing', async () => {
    const uuids = await store(some(2_000));
    const dump = await database.pool.connect();
    try {
      await dump.query(`begin isolation level repeatable read, read only`);
      await dump.query(
        'lock table event_ids, event_id_blocks, event_id_segments, event_id_filters in access share mode',
      );
      await dump.query('select 1 from event_ids limit 1');
      expect(await seal({ ...SIZES, segment: 400 })).toBe(1_600);
      const more = await store(some(500));
      expect(await seal({ ...SIZES, segment: 400 })).toBe(800);
      const { rows } = await dump.query(`select uuid from ${KNOWN_IDS} where project_id = $1`, [project]);
      expect(rows.map((row) => row.uuid).sort()).toEqual([...uuids].sort());
      expect(await resend([...uuids, ...more])).toBe(2_500);
    } finally {
      await dump.query('rollback');
      dump.release();
    }
  });
});

test('the index of a table that was large is made anew, also after an attempt that was killed', async () => {
  const uuids = await sealedEvents();
  const indexes = async () =>
    (
      await database.pool.query(
        `select indexrelid::regclass::text as name, c.relfilenode::int as file, indisvalid as valid
         from pg_index join pg_class c on c.oid = indexrelid where indrelid = 'event_ids'::regclass order by 1`,
      )
    ).rows;
  const [before] = await indexes();
  await database.pool.query('create index event_ids_pkey_ccnew on event_ids (project_id, uuid)');
  await database.pool.query(
    `update pg_index set indisvalid = false where indexrelid = 'event_ids_pkey_ccnew'::regclass`,
  );
  await seal();
  expect(await indexes()).toEqual([before]);
  await seal({ ...SIZES, index: 1 });
  const after = await indexes();
  expect(after).toEqual([{ name: 'event_ids_pkey', file: expect.any(Number), valid: true }]);
  expect(after[0].file).not.toBe(before.file);
  expect(await resend(uuids)).toBe(2_500);
});

describe('filters', () => {
  test('are merged as a binary number is counted, and no id is lost on the way', async () => {
    const uuids = await store(some(300));
    const merged = { ...SIZES, segment: 20, together: 4 };
    expect(await seal(merged)).toBe(280);
    const ranges = async () =>
      (
        await database.pool.query(
          'select first_segment as first, number as last from event_id_filter_sets order by 1',
        )
      ).rows;
    const fours = [1, 5, 9].map((first) => ({ first, last: first + 3 }));
    expect(await ranges()).toEqual([...fours, { first: 13, last: 14 }]);
    const more = await store(some(20));
    expect(await seal(merged)).toBe(20);
    expect(await ranges()).toEqual([...fours, { first: 13, last: 14 }, { first: 15, last: 15 }]);
    expect(await count('event_id_filters')).toBe(5 * FEW_PARTS);
    expect(await resend([...uuids, ...more])).toBe(320);
  });

  test('that say yes to everything drop no event, because the blocks decide', async () => {
    const uuids = await sealedEvents();
    await changeUnnoticed(
      `update event_id_filters set bits = array_fill(-1::bigint, array[cardinality(bits)])`,
    );
    expect(
      (await ingest.submit({ projectId: project, events: some(700).map((uuid) => capturedEvent({ uuid })) }))
        .stored,
    ).toBe(700);
    expect(await resend(uuids)).toBe(2_500);
  });

  test.each([
    ['all rows of all filters', 'delete from event_id_filters'],
    ['some rows of the filter of a group', 'delete from event_id_filters where number = 2 and part % 3 > 0'],
    ['the filter of a group', 'delete from event_id_filter_sets where number = 2'],
    ['the filter of a segment', 'delete from event_id_filter_sets where number = 3'],
    ['all filters', 'delete from event_id_filter_sets'],
    [
      'the bits of all filters',
      `update event_id_filters set bits = array_fill(0::bigint, array[cardinality(bits)])`,
    ],
    ['the rows of all filters, at once', 'truncate event_id_filters'],
  ])('%s are lost: the slow way answers, and they are made again', async (_what, statement) => {
    const uuids = await sealedEvents();
    await database.pool.query(statement);
    expect(await resend(uuids)).toBe(2_500);
    expect(await findEvent(database.pool, { projectId: project }, uuids[0] as string)).toBeDefined();
    await lookAtEach();
    expect(await filters()).toEqual([2, 3]);
    expect(await count('event_id_filters')).toBe(2 * FEW_PARTS);
    expect(await resend(uuids)).toBe(2_500);
  });

  test('that were changed are noticed and made again', async () => {
    const uuids = await sealedEvents();
    await changeUnnoticed(
      `update event_id_filters set bits = array_fill(0::bigint, array[cardinality(bits)])`,
    );
    await lookAtEach();
    expect(await filters()).toEqual([2, 3]);
    expect(await resend(uuids)).toBe(2_500);
  });

  test('are read as a whole once an hour, not each minute', async () => {
    await sealedEvents();
    const words = async () =>
      (await database.pool.query('select max(cardinality(bits)) as words from event_id_filters')).rows[0]
        .words;
    const before = await words();
    await changeUnnoticed('update event_id_filters set bits = bits || 0::bigint');
    for (let minute = 0; minute < 2; minute += 1) await seal({ ...SIZES, recheck: 3_600 });
    expect(await words()).toBe(before + 1);
    await database.pool.query(`update event_id_filter_sets set looked_at = looked_at - interval '1 hour'`);
    for (let minute = 0; minute < 2; minute += 1) await seal({ ...SIZES, recheck: 3_600 });
    expect(await filters()).toEqual([2, 3]);
    expect(await words()).toBe(before);
  });

  test('that another Postgres made are not asked, and made again', async () => {
    const uuids = await sealedEvents();
    await changeUnnoticed(
      `update event_id_filters set bits = array_fill(0::bigint, array[cardinality(bits)]);
       update event_id_filter_sets set sample = sample + 1`,
    );
    expect(await resend(uuids)).toBe(2_500);
    await seal();
    expect(await filters()).toEqual([2, 3]);
    expect(await resend(uuids)).toBe(2_500);
  });

  test.each(['event_id_filters', 'event_id_filters_pkey'])(
    'with a damaged page of %s: the slow way answers, and they are made again',
    async (relation) => {
      const uuids = await sealedEvents();
      await damage(relation);
      await expect(
        database.pool.query(
          'set enable_seqscan = off; select sum(part) from event_id_filters where part >= 0',
        ),
      ).rejects.toMatchObject({ code: expect.stringMatching(/^XX00[12]$/) });
      const fresh = some(700);
      await store(fresh);
      expect(await resend([...uuids, ...fresh])).toBe(3_200);
      await lookAtEach();
      expect(await filters()).toEqual([2, 3]);
      expect(await count('event_id_filters')).toBe(2 * FEW_PARTS);
      expect(await resend(uuids)).toBe(2_500);
    },
  );

  /** Overwrites the pages of a table or an index on the disk, and lets Postgres read them from there. */
  async function damage(relation: string) {
    const { rows } = await database.pool.query(
      `select current_setting('data_directory') || '/' || pg_relation_filepath($1) as file`,
      [relation],
    );
    await database.pool.query('checkpoint');
    await database.pool.query('create extension if not exists pg_buffercache');
    await database.pool.query(
      `select pg_buffercache_evict(bufferid) from pg_buffercache where relfilenode = pg_relation_filenode($1)`,
      [relation],
    );
    const handle = await open(rows[0].file, 'r+');
    const { size } = await handle.stat();
    await handle.write(randomBytes(size), 0, size, 0);
    await handle.close();
  }

  /** As a disk or a mistaken copy would change them: no trigger tells of it. */
  async function changeUnnoticed(statement: string) {
    await database.pool.query(
      `alter table event_id_filters disable trigger user; ${statement}; alter table event_id_filters enable trigger user`,
    );
  }

  /** One filter after the other is compared with its digest. */
  async function lookAtEach() {
    for (let filter = 0; filter < 2; filter += 1) await seal();
  }
});

describe('sealing that is ended', () => {
  test('after any of its steps forgets no id, and goes on from there', async () => {
    const uuids = await store([...some(900), ...some(400, uuidv7)]);
    let ended = 0;
    for (let step = 1; ; step += 1) {
      const controller = new AbortController();
      let beats = 0;
      const beat = () => {
        beats += 1;
        if (beats === (step % 40) + 1) controller.abort(new Error('ended'));
      };
      const result = await sealEventIds(database.pool, work(controller.signal, beat), {
        ...SIZES,
        segment: 300,
        slice: 170,
      }).catch((error: Error) => error.message);
      if (result !== 'ended') {
        expect(typeof result).toBe('number');
        expect(await count('event_ids')).toBeLessThanOrEqual(300);
        break;
      }
      ended += 1;
      const known = await census(database.pool, project);
      expect([known.uuids.size, known.wrong]).toEqual([1_300, []]);
      expect(await resend(uuids.slice(step % 50, (step % 50) + 100))).toBe(100);
    }
    expect(ended).toBeGreaterThan(5);
    expect((await database.pool.query(TWICE)).rows).toEqual([]);
    expect(await resend(uuids)).toBe(1_300);
  });
});

test('four writers with the same ids and two processes that seal: each event is stored once', async () => {
  const uuids = some(rounds(6_000, 40_000), () => (Math.random() < 0.5 ? randomUUID() : uuidv7()));
  const pools = Array.from({ length: 4 }, () => createPool({ url: database.url, size: 4, name: 'ingest' }));
  const writers = pools.map((one) => createIngest({ pool: one }));
  let isOver = false;
  let sealed = 0;
  const sealers = [1, 2].map(async () => {
    while (!isOver) {
      const ids = await seal({ ...SIZES, segment: 500, slice: 200 });
      sealed += ids;
    }
  });
  const results = await Promise.all(
    writers.map(async (writer) => {
      let stored = 0;
      const shuffled = [...uuids, ...uuids].sort(() => Math.random() - 0.5);
      for (let from = 0; from < shuffled.length; from += 100) {
        const events = shuffled.slice(from, from + 100).map((uuid) => capturedEvent({ uuid }));
        stored += (await writer.submit({ projectId: project, events })).stored;
      }
      return stored;
    }),
  );
  isOver = true;
  await Promise.all(sealers);
  await Promise.all(writers.map((writer) => writer.close()));
  await Promise.all(pools.map((one) => one.end()));
  expect(sealed).toBeGreaterThan(uuids.length / 2);
  expect(results.reduce((sum, one) => sum + one, 0)).toBe(uuids.length);
  const known = await census(database.pool, project);
  expect([known.uuids, known.wrong]).toEqual([new Set(uuids), []]);
  expect((await database.pool.query(TWICE)).rows).toEqual([]);
});
