import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, jest, test } from '@jest/globals';
import { createIngest } from '../../capture/ingest.ts';
import { STAMP_SQL } from '../../db/horizon.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { capturedEvent } from '../capture/support.ts';
import { LONG, rounds } from '../support/rounds.ts';
import { exportedUuids, exportWorldForFile } from './support.ts';

const TRIALS = rounds(20, 200);
if (LONG) jest.setTimeout(900_000);
const world = exportWorldForFile();

/** Stores one event in a transaction that stays open for up to half a second after it got its time. */
async function storeSlowly(): Promise<string> {
  const uuid = uuidv7();
  const client = await world.pool.connect();
  try {
    await client.query('begin');
    const [, stamped] = (await client.query(STAMP_SQL)) as unknown as { rows: { stamp: string }[] }[];
    await pause(Math.random() ** 3 * 500);
    await client.query(
      `insert into events
       select 1, $1, t, t, t, false, 'slow', 'user', '{}', null, null, '', gen_random_uuid(), 'full', '{}'
       from (select timestamptz '2000-01-01 00:00:00+00' + $2::bigint * interval '1 microsecond' as t) as made`,
      [uuid, stamped?.rows[0]?.stamp],
    );
    // Now and then nothing comes of it.
    if (Math.random() < 0.05) {
      await client.query('rollback');
      return '';
    }
    await client.query('commit');
    return uuid;
  } finally {
    client.release();
  }
}

test(`events that are committed around the edges of ${TRIALS} intervals are exported once each`, async () => {
  const ingest = createIngest({ pool: world.pool });
  const row = await world.create('File', { directory: 'edges' });
  const stored: string[] = [];
  let over = false;
  const slow = Array.from({ length: 3 }, async () => {
    while (!over) {
      const uuid = await storeSlowly();
      if (uuid) stored.push(uuid);
    }
  });
  const quick = (async () => {
    while (!over) {
      const events = Array.from({ length: 1 + Math.floor(Math.random() * 5) }, () => capturedEvent());
      await ingest.submit({ projectId: 1, events });
      stored.push(...events.map((one) => one.uuid));
      await pause(Math.random() * 20);
    }
  })();

  const begin = Date.now();
  let start = begin;
  const runs: Promise<unknown>[] = [];
  for (let trial = 0; trial < TRIALS; trial += 1) {
    await pause(50 + Math.random() * 300);
    const end = Date.now();
    const interval = { start: new Date(start).toISOString(), end: new Date(end).toISOString() };
    // Not waited for: intervals overlap in their work, and the next one begins where this one ends.
    runs.push(world.run(row, interval));
    start = end;
  }
  over = true;
  await Promise.all([...slow, quick]);
  const last = { start: new Date(start).toISOString(), end: new Date(Date.now() + 1).toISOString() };
  runs.push(world.run(row, last));
  await Promise.all(runs);
  await ingest.close();

  for (const run of await world.runsOf(row)) expect(run.status).toBe('Completed');
  const exported = exportedUuids(path.join(world.root, 'edges'));
  expect(stored.length).toBeGreaterThan(TRIALS);
  // No miss, no double.
  expect(exported).toEqual([...stored].sort());
});
