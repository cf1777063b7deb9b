import { spawn } from 'node:child_process';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { registerCarryingMetrics } from '../../capture/carrying-metrics.ts';
import { createIngest, type Ingest } from '../../capture/ingest.ts';
import { addLayer, type Layer, latestOf } from '../../capture/persons/copied.ts';
import { instantOf, takeStamp } from '../../db/horizon.ts';
import { deletePersons } from '../../db/person-deletions.ts';
import { createPool, type Pool, transaction } from '../../db/pool.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { databaseForFile } from '../support/database.ts';
import { PATIENCE } from '../support/eventually.ts';
import { rounds } from '../support/rounds.ts';
import { expectLikeEvents, PEOPLE, visit } from './copied-properties.ts';
import { capturedEvent, carryAll } from './support.ts';

const database = databaseForFile();
let pool: Pool;
/** What they remember of persons is theirs alone, as it is in two processes. */
let ingests: Ingest[];
beforeAll(() => {
  pool = createPool({ url: database.url, size: 6, name: 'carry' });
  ingests = [1, 2].map(() => createIngest({ pool, limits: { patience: PATIENCE } }));
});
afterAll(async () => {
  for (const one of ingests ?? []) await one.close();
  await pool?.end();
});

let project = 500;
const nextProject = () => {
  project += 1;
  return project;
};

type Properties = Record<string, unknown>;

/** Sends events of one process in a request each. */
async function send(
  projectId: number,
  events: readonly [id: string, properties: Properties, event?: string][],
  process = 0,
): Promise<void> {
  for (const [distinct_id, properties, event = 'page viewed'] of events) {
    await ingests[process]?.submit({
      projectId,
      events: [capturedEvent({ event, distinct_id, properties })],
    });
  }
}

async function personOf(projectId: number, distinctId: string) {
  const { rows } = await database.pool.query(
    `select p.version, p.properties, p.named_at from persons p
     join person_distinct_ids d on d.project_id = p.project_id and d.person_id = p.id
     where d.project_id = $1 and d.distinct_id = $2`,
    [projectId, distinctId],
  );
  return rows[0];
}

/** What the rows of events show of their persons, in the order of storing. */
async function shown(projectId: number): Promise<Properties[]> {
  const { rows } = await database.pool.query(
    'select person_properties from events where project_id = $1 order by inserted_at, ctid',
    [projectId],
  );
  return rows.map((row) => row.person_properties);
}

test('a visit changes its person once: the first values at once, the latest ones when they are carried', async () => {
  const projectId = nextProject();
  await send(projectId, [
    ['ann', { $current_url: '/1', $browser: 'Chrome' }],
    ['ann', { $current_url: '/2', $browser: 'Chrome', utm_source: 'letter' }],
    ['ann', { $current_url: '/3', utm_source: 'search' }],
  ]);
  const first = {
    $current_url: '/1',
    $initial_current_url: '/1',
    $browser: 'Chrome',
    $initial_browser: 'Chrome',
  };
  const campaign = { utm_source: 'letter', $initial_utm_source: 'letter' };
  expect(await personOf(projectId, 'ann')).toEqual({
    ...{ version: 1, named_at: null },
    properties: { ...first, ...campaign },
  });
  expect(await shown(projectId)).toEqual([
    first,
    { ...first, ...campaign, $current_url: '/2' },
    { ...first, ...campaign, $current_url: '/3', utm_source: 'search' },
  ]);
  expect(await carryAll(pool)).toBe(1);
  const carried = { ...first, ...campaign, $current_url: '/3', utm_source: 'search' };
  expect(await personOf(projectId, 'ann')).toEqual({ version: 2, named_at: null, properties: carried });
  expect(await carryAll(pool)).toBe(0);
});

test('of each property the value of the latest event counts, whichever process stored it', async () => {
  const projectId = nextProject();
  await send(projectId, [['bob', { $current_url: '/1', $browser: 'A', $os: 'B' }]]);
  await send(projectId, [['bob', { $current_url: '/2', $browser: 'C' }]], 1);
  await send(projectId, [['bob', { $current_url: '/3' }]], 0);
  await send(projectId, [['bob', { $os: 'D' }]], 1);
  await carryAll(pool);
  expect((await personOf(projectId, 'bob')).properties).toMatchObject({
    $current_url: '/3',
    $browser: 'C',
    $os: 'D',
  });
});

test('a later page does not take back what was set by name, unless it brings that itself', async () => {
  const projectId = nextProject();
  await send(projectId, [
    ['eve', { $browser: 'first', $os: 'first', $device_type: 'first' }],
    ['eve', { $browser: 'page', $os: 'page', $device_type: 'page' }],
  ]);
  // The other process does not know of the second page, so for it nothing changes.
  await send(
    projectId,
    [['eve', { $set: { $browser: 'first', $os: 'named', plan: 'x' }, $unset: ['$device_type'] }]],
    1,
  );
  await carryAll(pool);
  expect((await personOf(projectId, 'eve')).properties).toEqual({
    ...{ $browser: 'first', $initial_browser: 'first', $os: 'named', $initial_os: 'first' },
    ...{ $initial_device_type: 'first', plan: 'x' },
  });
  await send(projectId, [['eve', { $browser: 'last', $device_type: 'last' }]]);
  await carryAll(pool);
  expect((await personOf(projectId, 'eve')).properties).toMatchObject({
    ...{ $browser: 'last', $os: 'named', $device_type: 'last', plan: 'x' },
  });
});

test('what is set by name stays although the person seems to have it already', async () => {
  const projectId = nextProject();
  await send(projectId, [
    ['ida', { $browser: 'first' }],
    ['ida', { $browser: 'page' }],
  ]);
  // What this process does not know: an event has brought another value meanwhile.
  await send(projectId, [['ida', { $set: { $browser: 'first' } }]], 1);
  await carryAll(pool);
  expect((await personOf(projectId, 'ida')).properties).toMatchObject({ $browser: 'first' });
});

test('within one transaction, the last of a page and a name wins', async () => {
  const projectId = nextProject();
  await send(projectId, [['kim', { $browser: 'first', $os: 'first' }]]);
  const events = [
    { $browser: 'page', $os: 'page' },
    { $set: { $browser: 'named', $os: 'named' } },
    { $browser: 'last' },
  ].map((properties, index) => capturedEvent({ index, distinct_id: 'kim', properties }));
  await ingests[0]?.submit({ projectId, events });
  await carryAll(pool);
  expect((await personOf(projectId, 'kim')).properties).toMatchObject({ $browser: 'last', $os: 'named' });
});

test('a merge leaves the remaining person its values; later pages of both ids are that person’s', async () => {
  const projectId = nextProject();
  await send(projectId, [
    ['user', { $current_url: '/user', $set: { name: 'U' } }],
    ['anon', { $current_url: '/anon', utm_source: 'first' }],
    ['anon', { $current_url: '/anon/2', utm_source: 'second' }],
    ['user', { $anon_distinct_id: 'anon' }, '$identify'],
  ]);
  await carryAll(pool);
  expect((await personOf(projectId, 'anon')).properties).toMatchObject({
    ...{ $current_url: '/user', utm_source: 'second', $initial_utm_source: 'first' },
  });
  await send(projectId, [['anon', { $current_url: '/anon/3' }]], 1);
  await send(projectId, [['user', { utm_source: 'third' }]], 0);
  await carryAll(pool);
  expect((await personOf(projectId, 'user')).properties).toMatchObject({
    ...{ $current_url: '/anon/3', utm_source: 'third', name: 'U' },
  });
});

test('what a deleted person did never comes to the person that has the distinct id afterwards', async () => {
  const projectId = nextProject();
  await send(projectId, [
    ['ghost', { $current_url: '/1' }],
    ['ghost', { $current_url: '/secret', $browser: 'old' }],
  ]);
  await transaction(pool, (client) => deletePersons(client, projectId, { distinctIds: ['ghost'] }));
  await send(projectId, [['ghost', { $os: 'new' }]]);
  await carryAll(pool);
  expect((await personOf(projectId, 'ghost')).properties).toEqual({ $os: 'new', $initial_os: 'new' });
});

test('exceptions, anonymous events, servers and places are as they are for events', async () => {
  const projectId = nextProject();
  const place = { $geoip_country_code: 'DE', $geoip_city_name: 'Bonn' };
  await send(projectId, [
    ['zoe', { $browser: 'first', $os: 'first', ...place }],
    ['zoe', { $browser: 'exception' }, '$exception'],
    ['zoe', { $browser: 'anonymous', $process_person_profile: false }],
    ['zoe', { $browser: 'server', $os: 'server', $is_server: true }],
    ['zoe', { $geoip_country_code: 'FR' }],
  ]);
  await carryAll(pool);
  expect((await personOf(projectId, 'zoe')).properties).toMatchObject({
    ...{ $browser: 'server', $os: 'first', $geoip_country_code: 'FR', $geoip_city_name: null },
    ...{ $initial_geoip_city_name: 'Bonn' },
  });
});

test('few events are carried at once, many when the oldest ones have waited', async () => {
  const projectId = nextProject();
  const pages = (count: number) =>
    Array.from({ length: count }, (_, page) => ['rex', { $current_url: `/${page}` }] as [string, Properties]);
  await send(projectId, pages(4));
  expect(await carryAll(pool, { patience: 3_600_000, events: 3 })).toBe(0);
  expect(await carryAll(pool, { patience: 3_600_000, events: 10 })).toBe(1);
  expect((await personOf(projectId, 'rex')).properties).toMatchObject({ $current_url: '/3' });
});

test('an event with more properties than are read as a whole brings the same', async () => {
  const projectId = nextProject();
  await send(projectId, [
    ['max', { $current_url: '/1' }],
    ['max', { padding: 'x'.repeat(50_000), $current_url: '/2', $set: { plan: 'p' } }],
  ]);
  await carryAll(pool);
  expect((await personOf(projectId, 'max')).properties).toMatchObject({ $current_url: '/2', plan: 'p' });
});

test('however many carry at the same time as events are stored, each person ends with its latest values', async () => {
  const projectId = nextProject();
  const seed = Date.now() % 1_000_000;
  const visits = fc.sample(visit, { seed, numRuns: rounds(1_500, 10_000) });
  let isDone = false;
  const carriers = [1, 2, 3].map(async () => {
    let changed = 0;
    while (!isDone) changed += await carryAll(pool, { persons: 3, events: 50, bytes: 5_000 });
    return changed;
  });
  const lanes = [0, 1, 2, 3].map(async (lane) => {
    for (let at = lane; at < visits.length; at += 4) {
      const { id, properties } = visits[at] as (typeof visits)[number];
      await send(projectId, [[id, { ...properties, $set: { last: at } }]], lane % 2);
    }
  });
  await Promise.all(lanes);
  isDone = true;
  const changed = (await Promise.all(carriers)).reduce((sum, one) => sum + one, 0);
  expect(changed).toBeGreaterThan(0);
  await carryAll(pool);
  expect(await expectLikeEvents(database.pool, projectId)).toBe(PEOPLE);
});

test('an event that is still being stored is carried later, whatever else was meanwhile', async () => {
  const projectId = nextProject();
  await send(projectId, [['pat', { $current_url: '/1' }]]);
  await carryAll(pool);
  const open = await pool.connect();
  try {
    // A transaction of an event as ingestion begins it. It takes long.
    await open.query('begin');
    const stamp = await takeStamp(open);
    const carrying = carryAll(pool);
    await open.query(
      `insert into events (project_id, uuid, timestamp, created_at, inserted_at, historical, event, distinct_id, properties,
         elements_chain, person_id, person_mode, person_properties)
       select project_id, gen_random_uuid(), now(), now(), ${instantOf('$2::bigint')}, false, 'seen', distinct_id,
         '{"$current_url":"/2"}', '', person_id, 'full', '{}'
       from events where project_id = $1`,
      [projectId, stamp],
    );
    // Carrying gives up for now.
    expect(await carrying).toBe(0);
    await open.query('commit');
  } finally {
    open.release();
  }
  await carryAll(pool);
  expect((await personOf(projectId, 'pat')).properties).toMatchObject({ $current_url: '/2' });
});

test('a carrier that was overtaken writes nothing more', async () => {
  const projectId = nextProject();
  await send(projectId, [['leo', { $current_url: '/1' }]]);
  await carryAll(pool);
  await send(projectId, [['leo', { $current_url: '/2' }]]);
  // The first one has read the second page and waits for the person.
  const blocker = await pool.connect();
  try {
    await blocker.query('begin');
    await blocker.query('select from person_carrying for update');
    const overtaken = carryAll(pool);
    for (;;) {
      const { rows } = await database.pool.query(
        `select count(*)::int as waiting from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock' and query like 'select from person_carrying%'`,
      );
      if (rows[0].waiting > 0) break;
    }
    // Another one has carried the second page and the third one meanwhile.
    await blocker.query(
      `update persons set properties = properties || '{"$current_url":"/3"}' where project_id = ${projectId}`,
    );
    await blocker.query(`update person_carrying set through = through + interval '1 microsecond'`);
    await blocker.query('commit');
    expect(await overtaken).toBe(0);
  } finally {
    blocker.release();
  }
  expect((await personOf(projectId, 'leo')).properties).toMatchObject({ $current_url: '/3' });
});

test('a carrier that is killed again and again loses nothing', async () => {
  const projectId = nextProject();
  const visits = fc.sample(visit, { seed: 7, numRuns: 600 });
  const script = path.join(import.meta.dirname, 'carry-process.ts');
  let isDone = false;
  const killing = (async () => {
    let kills = 0;
    while (!isDone || kills < 3) {
      const child = spawn(process.execPath, [script], {
        env: { ...process.env, DATABASE_URL: database.url },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const gone = new Promise((resolve) => child.once('exit', resolve));
      // In the middle of a later run, wherever that is.
      let begun = 0;
      await new Promise<void>((resolve) => {
        child.stdout.setEncoding('utf8').on('data', (text: string) => {
          begun += text.split('begins').length - 1;
          if (begun > 2) resolve();
        });
        child.once('exit', () => resolve());
      });
      child.kill('SIGKILL');
      await gone;
      kills += 1;
    }
    return kills;
  })();
  for (const [index, { id, properties }] of visits.entries())
    await send(projectId, [[id, properties]], index % 2);
  isDone = true;
  expect(await killing).toBeGreaterThanOrEqual(3);
  await carryAll(pool);
  expect(await expectLikeEvents(database.pool, projectId)).toBe(PEOPLE);
});

test('layers: in whatever order events are read, the latest value of each property stays', () => {
  const layer = fc.record({
    stamp: fc.integer({ min: 1, max: 6 }),
    at: fc.integer({ min: 1, max: 3 }),
    values: fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.integer(), { minKeys: 1 }),
  });
  fc.assert(
    fc.property(
      fc.array(layer, { minLength: 1, maxLength: 8 }),
      fc.integer({ min: 0, max: 6 }),
      (given, named) => {
        const layers: Layer[] = [];
        let bytes = 0;
        for (const one of given) bytes += addLayer(layers, { ...one, values: { ...one.values }, bytes: 10 });
        expect(bytes).toBe(layers.length * 10);
        const expected: Properties = {};
        const sorted = given.map((one, index) => ({ ...one, index }));
        sorted.sort((x, y) => x.stamp - y.stamp || x.at - y.at || x.index - y.index);
        for (const { stamp, values } of sorted) {
          for (const name of Object.keys(values)) {
            delete expected[name];
            if (name !== 'a' || stamp > named) expected[name] = values[name];
          }
        }
        expect(latestOf(layers, { a: named }) ?? {}).toEqual(expected);
      },
    ),
    { numRuns: rounds(2_000, 100_000) },
  );
});

test('a metric tells how old the copied properties of persons are', async () => {
  const registry = createRegistry('test');
  registerCarryingMetrics(registry, pool);
  const age = async () =>
    Number(/^sluice_persons_behind_seconds\{process="test"\} (\S+)$/m.exec(await registry.metrics())?.[1]);
  await pool.query('delete from person_carrying');
  expect(await age()).toBe(0);
  await pool.query(`insert into person_carrying (through) values (now() - interval '1 hour')`);
  expect(await age()).toBeGreaterThan(3_599);
  await carryAll(pool);
  expect(await age()).toBeLessThan(3_599);
});
