import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { to as copyTo } from 'pg-copy-streams';
import { bindDestination } from '../../destinations/bind.ts';
import type { RawConfig } from '../../destinations/config.ts';
import type { Delivery, Surroundings } from '../../destinations/destination.ts';
import { runTestStep } from '../../destinations/settings.ts';
import { createEgress } from '../../egress/egress.ts';
import type { Column } from '../../formats/columns.ts';
import { type ModelName, modelOf } from '../../models/index.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { startPostgresProxy } from '../support/postgres-proxy.ts';
import { postgresSettings } from '../support/postgres-settings.ts';
import { failureOf, HASTE, RUN, textOf } from './harness.ts';
import { copyBytes, EVENT_COLUMNS, pieces, sampleEvents, sampleUuid } from './sample.ts';

const database = databaseForFile();
let surroundings: Surroundings;
let serial = 0;

beforeAll(() => {
  surroundings = {
    egress: createEgress({ allow: '127.0.0.1,localhost' }),
    exportRoot: '/nowhere',
    patience: HASTE,
  };
});
afterAll(() => surroundings.egress.close());

function configOf(more: RawConfig = {}): RawConfig {
  serial += 1;
  return { ...postgresSettings(database.url, `out_${serial}`), ...more };
}

interface Options extends Partial<Omit<Delivery, 'run'>> {
  model?: ModelName;
  columns?: Column[];
  around?: Partial<Surroundings>;
}

function bound(config: RawConfig, around: Partial<Surroundings> = {}) {
  const destination = bindDestination({ type: 'Postgres', config }, { ...surroundings, ...around });
  if (destination.kind !== 'rows' || !destination.find)
    throw new Error('Postgres takes rows, and can be asked');
  return { deliver: destination.deliver, find: destination.find };
}

function deliveryOf(
  rows: readonly object[],
  { model = 'events', columns = EVENT_COLUMNS, ...more }: Options,
): Delivery {
  const bytes = copyBytes(columns, rows);
  const { table: rules } = modelOf(model);
  return { run: { ...RUN, model }, columns, rules, read: () => pieces(bytes), ...more };
}

const deliver = (config: RawConfig, rows: readonly object[], options: Options = {}) =>
  bound(config, options.around).deliver(deliveryOf(rows, options));

const query = async (text: string, values: unknown[] = []) => (await database.pool.query(text, values)).rows;

test('a transaction whose client has vanished is found out by the server', async () => {
  const config = configOf();
  await deliver(config, sampleEvents(1));
  // The settings as they are while rows are written.
  await query('create table seen (idle text, interval text, count text, statement text)');
  await query(
    `create function see() returns trigger language plpgsql as $$ begin
       insert into seen select current_setting('tcp_keepalives_idle'), current_setting('tcp_keepalives_interval'),
         current_setting('tcp_keepalives_count'), current_setting('statement_timeout');
       return new; end $$`,
  );
  await query(`create trigger see before insert on ${config.table_name} for each row execute function see()`);
  await deliver(config, sampleEvents(2).slice(1));
  expect(await query('select * from seen')).toEqual([
    { idle: '30', interval: '10', count: '3', statement: '0' },
  ]);
});

describe('a table that Sluice makes', () => {
  test('has the types of PostHog’s exports and a primary key', async () => {
    const config = configOf();
    const more: Column[] = [
      { name: 'set', type: 'json', nullable: true },
      { name: 'ip', type: 'string', nullable: true },
      { name: 'person_id', type: 'uuid', nullable: true },
      { name: 'count', type: 'int64', nullable: true },
      { name: 'share', type: 'float64', nullable: true },
      { name: 'is_new', type: 'bool', nullable: true },
      { name: 'urls', type: 'strings', nullable: true },
    ];
    const rows = sampleEvents(2).map((event) => ({
      ...event,
      set: '{"a":1}',
      ip: '::1',
      person_id: sampleUuid(77),
      count: 2 ** 40,
      share: 0.5,
      is_new: true,
      urls: ['a', 'b,"c'],
    }));
    const columns = [...EVENT_COLUMNS, ...more];
    expect(await deliver(config, rows, { columns })).toMatchObject({ rows: 2, written: 2, rejected: 0 });
    const types = await query(
      `select attname as name, format_type(atttypid, atttypmod) as type from pg_attribute
       where attrelid = $1::regclass and attnum > 0 order by attnum`,
      [config.table_name],
    );
    expect(Object.fromEntries(types.map(({ name, type }) => [name, type]))).toEqual({
      uuid: 'character varying(200)',
      event: 'character varying(200)',
      distinct_id: 'character varying(200)',
      team_id: 'integer',
      timestamp: 'timestamp with time zone',
      properties: 'jsonb',
      elements_chain: 'text',
      set: 'jsonb',
      ip: 'character varying(200)',
      person_id: 'text',
      count: 'bigint',
      share: 'double precision',
      is_new: 'boolean',
      urls: 'text[]',
    });
    const [row] = await query(`select * from ${config.table_name} order by uuid`);
    expect(row).toEqual({
      ...rows[0],
      timestamp: '2026-01-31T12:00:00Z',
      properties: JSON.parse(rows[0]?.properties as string),
      set: { a: 1 },
    });
    const [{ key }] = await query(
      `select pg_get_constraintdef(oid) as key from pg_constraint where conrelid = $1::regclass and contype = 'p'`,
      [config.table_name],
    );
    expect(key).toBe('PRIMARY KEY (team_id, uuid)');
  });

  test('may have any name', async () => {
    const schema = 'we"ird; schema';
    await query(`create schema "we""ird; schema"`);
    const config = configOf({ schema, table_name: `ta'ble"; drop table x; --` });
    await deliver(config, sampleEvents(3));
    await deliver(config, sampleEvents(4));
    const [{ count }] = await query(
      `select count(*) as count from "we""ird; schema"."ta'ble""; drop table x; --"`,
    );
    expect(count).toBe(4);
  });

  test('is made once by runs that begin together, and each row is there once', async () => {
    const config = configOf();
    await Promise.all([1, 2, 3, 4].map(() => deliver(config, sampleEvents(200))));
    expect(await query(`select count(*) as count from ${config.table_name}`)).toEqual([{ count: 200 }]);
  });

  test('takes the bytes of a real COPY', async () => {
    await query(
      "create table source as select gen_random_uuid() as uuid, n::text as event, n::text as distinct_id, 7 as team_id, now() as timestamp, json_build_object('n', n) as properties, null::text as elements_chain from generate_series(1, 5000) n",
    );
    const config = configOf();
    const client = await database.pool.connect();
    try {
      const read = () =>
        client.query(copyTo('copy source to stdout (format binary)')) as AsyncIterable<Buffer>;
      const result = await bound(config).deliver({
        ...{ run: RUN, columns: EVENT_COLUMNS, rules: modelOf('events').table, read },
      });
      expect(result).toMatchObject({ rows: 5000, written: 5000 });
    } finally {
      client.release();
    }
    const [{ differences }] = await query(
      `select count(*) as differences from source s full join ${config.table_name} t on t.uuid = s.uuid::text
       where s.uuid is null or t.uuid is null or t.timestamp <> s.timestamp or t.properties <> s.properties::jsonb or t.event <> s.event`,
    );
    expect(differences).toBe(0);
  });
});

describe('a table that was there', () => {
  test('gets the columns that it has, in its own types', async () => {
    const config = configOf();
    await query(
      `create table ${config.table_name} (id bigint generated always as identity, uuid uuid, event text, properties json, timestamp timestamp, noted timestamptz default now(), primary key (uuid))`,
    );
    await deliver(config, sampleEvents(3));
    const rows = await query(
      `select uuid::text, event, properties, timestamp::text from ${config.table_name} order by id`,
    );
    expect(rows[1]).toEqual({
      uuid: sampleUuid(1),
      event: 'clicked "büy"',
      properties: JSON.parse(sampleEvents(2)[1]?.properties as string),
      timestamp: '2026-01-31 12:00:00.001',
    });
    await deliver(config, sampleEvents(5));
    expect(await query(`select count(*) as count from ${config.table_name}`)).toEqual([{ count: 5 }]);
  });

  test.each([
    ['no index', ''],
    ['an index that is not unique', 'create index on TABLE (uuid)'],
    ['an index over some rows', "create unique index on TABLE (uuid) where event = 'x'"],
    ['a constraint that is checked later', 'alter table TABLE add unique (uuid) deferrable'],
    ['an index with more columns', 'create unique index on TABLE (uuid, event)'],
  ])('with %s: one copy, also by attempts at once', async (_name, index) => {
    const config = configOf();
    await query(`create table ${config.table_name} (uuid text, team_id bigint, event text)`);
    if (index) await query(index.replace('TABLE', config.table_name as string));
    await Promise.all([deliver(config, sampleEvents(100)), deliver(config, sampleEvents(100))]);
    await deliver(config, sampleEvents(120));
    const [found] = await query(
      `select count(*) as count, count(distinct uuid) as uuids from ${config.table_name}`,
    );
    expect(found).toEqual({ count: 120, uuids: 120 });
  });

  test.each([
    ['none of the columns', '(other text)', 'events', 'has none of the columns'],
    ['no uuid', '(event text)', 'events', 'needs the columns team_id and uuid, or uuid'],
    [
      'no key to merge by',
      '(team_id int, distinct_id text, person_version int, person_distinct_id_version int)',
      'persons',
      'needs a primary key or a unique index on (team_id, distinct_id)',
    ],
    [
      'no versions',
      '(team_id int, distinct_id text, primary key (team_id, distinct_id))',
      'persons',
      'lacks person_distinct_id_version, person_version',
    ],
  ] as const)('with %s is for the operator', async (_name, columns, model, message) => {
    const config = configOf();
    await query(`create table ${config.table_name} ${columns}`);
    const failed = await failureOf(
      deliver(config, [], model === 'persons' ? { model, columns: PERSON_COLUMNS } : {}),
    );
    expect(failed).toMatchObject({ code: 'mismatch', retryable: false });
    expect(failed.message).toContain(message);
  });

  test.each([
    ['a type that takes no such value', '(uuid text primary key, timestamp integer)', 'mismatch'],
    ['a column that must be filled', '(uuid text primary key, needed text not null)', 'rejected'],
    ['a check', `(uuid text primary key, event text check (event <> '$pageview'))`, 'rejected'],
    ['another unique column', '(uuid text primary key, team_id int unique)', 'rejected'],
  ])('with %s is for the operator, and nothing is written', async (_name, columns, code) => {
    const config = configOf();
    await query(`create table ${config.table_name} ${columns}`);
    expect(await failureOf(deliver(config, sampleEvents(10)))).toMatchObject({ code, retryable: false });
    expect(await query(`select count(*) as count from ${config.table_name}`)).toEqual([{ count: 0 }]);
  });

  test('that is a view is refused', async () => {
    const config = configOf();
    await query(`create view ${config.table_name} as select '' as uuid`);
    expect(await failureOf(deliver(config, sampleEvents(1)))).toMatchObject({ code: 'mismatch' });
  });
});

describe('rows that the table cannot take', () => {
  const rows = sampleEvents(50, (index) =>
    index === 7
      ? { properties: '{"a":"\\u0000"}' }
      : index === 8
        ? { event: 'x'.repeat(300) }
        : index === 9
          ? { properties: '{"a":1e400000}' }
          : {},
  );

  test('are kept apart, counted and named; the others go in, once', async () => {
    const config = configOf();
    for (const written of [47, 0]) {
      const result = await deliver(config, rows);
      expect(result).toMatchObject({ rows: 50, written, rejected: 3 });
      expect(result.rejections.map(({ key }) => key)).toEqual([7, 8, 9].map(sampleUuid));
      expect(result.rejections[1]?.reason).toBe('value too long for type character varying(200)');
    }
    expect(await query(`select count(*) as count from ${config.table_name}`)).toEqual([{ count: 47 }]);
  });

  test('if it is all of them, the operator must act', async () => {
    const config = configOf();
    const failed = await failureOf(deliver(config, rows.slice(7, 10)));
    expect(failed).toMatchObject({ code: 'mismatch', retryable: false });
  });
});

const PERSON_COLUMNS: Column[] = [
  { name: 'team_id', type: 'int32', nullable: false },
  { name: 'distinct_id', type: 'string', nullable: false },
  { name: 'person_id', type: 'uuid', nullable: false },
  { name: 'properties', type: 'json', nullable: false },
  { name: 'person_version', type: 'int32', nullable: false },
  { name: 'person_distinct_id_version', type: 'int32', nullable: false },
];
const person = (name: string, version: number, idVersion: number, note: string) => ({
  team_id: 7,
  distinct_id: name,
  person_id: sampleUuid(1),
  properties: JSON.stringify({ note }),
  person_version: version,
  person_distinct_id_version: idVersion,
});

describe('merging', () => {
  test('persons: the newer version stays, whatever the order', async () => {
    const config = configOf();
    const options = { model: 'persons' as const, columns: PERSON_COLUMNS };
    await deliver(
      config,
      [person('a', 2, 0, 'second'), person('b', 1, 0, 'first'), person('c', 1, 0, 'first')],
      options,
    );
    await deliver(
      config,
      [person('a', 1, 0, 'older'), person('b', 2, 0, 'newer'), person('c', 1, 1, 'moved')],
      options,
    );
    await deliver(config, [person('b', 2, 0, 'same version')], options);
    const notes = await query(
      `select distinct_id, properties->>'note' as note from ${config.table_name} order by 1`,
    );
    expect(notes.map(({ distinct_id, note }) => `${distinct_id} ${note}`)).toEqual([
      'a second',
      'b newer',
      'c moved',
    ]);
  });

  test('persons: of two versions in one run the newer stays', async () => {
    const config = configOf();
    const options = { model: 'persons' as const, columns: PERSON_COLUMNS };
    await deliver(
      config,
      [person('a', 1, 0, 'first'), person('a', 3, 0, 'third'), person('a', 2, 0, 'second')],
      options,
    );
    expect(await query(`select properties->>'note' as note from ${config.table_name}`)).toEqual([
      { note: 'third' },
    ]);
    expect(
      await bound(config).find(deliveryOf([person('a', 1, 0, ''), person('b', 1, 0, '')], options)),
    ).toEqual({ expected: 2, found: 1 });
  });

  test('sessions: the one that ends later stays', async () => {
    const columns: Column[] = [
      { name: 'team_id', type: 'int32', nullable: false },
      { name: 'session_id', type: 'string', nullable: false },
      { name: 'end_timestamp', type: 'timestamp', nullable: false },
      { name: 'urls', type: 'strings', nullable: false },
    ];
    const config = configOf();
    const options = { model: 'sessions' as const, columns };
    const session = (minute: number, ...urls: string[]) => ({
      team_id: 7,
      session_id: 's',
      end_timestamp: new Date(Date.UTC(2026, 0, 31, 12, minute)),
      urls,
    });
    const urls = async () => (await query(`select urls from ${config.table_name}`))[0].urls;
    await deliver(config, [session(5, 'a')], options);
    await deliver(config, [session(4)], options);
    expect(await urls()).toEqual(['a']);
    await deliver(config, [session(5, 'a', 'late')], options);
    expect(await urls()).toEqual(['a', 'late']);
    await deliver(config, [session(6, 'b')], options);
    expect(await urls()).toEqual(['b']);
  });
});

test('find tells how many of the rows are there', async () => {
  const config = configOf();
  await deliver(config, sampleEvents(10));
  expect(await bound(config).find(deliveryOf(sampleEvents(15), {}))).toEqual({ expected: 15, found: 10 });
});

/** As long as the work takes, a server in front of Postgres. */
async function withProxy<T>(
  options: { tls?: boolean; cutAfter?: () => number },
  work: (port: number) => Promise<T>,
): Promise<T> {
  const { cutAfter = () => Number.POSITIVE_INFINITY, ...rest } = options;
  const watch = (_piece: Buffer, bytes: number) => (bytes > cutAfter() ? ('cut' as const) : undefined);
  const proxy = await startPostgresProxy({ ...rest, behind: Number(new URL(database.url).port), watch });
  return work(proxy.port).finally(proxy.close);
}

describe('TLS', () => {
  test('a certificate that nobody known signed is refused, unless the configuration accepts it', async () => {
    await withProxy({ tls: true }, async (port) => {
      const config = configOf({ port });
      expect(await failureOf(deliver(config, []))).toMatchObject({ code: 'untrusted', retryable: false });
      const result = await deliver({ ...config, has_self_signed_cert: true }, sampleEvents(3));
      expect(result).toMatchObject({ rows: 3 });
    });
  });

  test('a server without TLS is refused, unless SLUICE_EGRESS_ALLOW names it', async () => {
    const allowed = createEgress({ allow: '127.0.0.1' });
    const strict = createEgress();
    // As if the server had a public address: it may be reached, but not as one of the operator's own.
    const egress = {
      ...allowed,
      socket: (options?: { listedOnly?: boolean }) =>
        options?.listedOnly ? strict.socket(options) : allowed.socket(),
    };
    const failed = await failureOf(deliver(configOf({ host: '127.0.0.1' }), [], { around: { egress } }));
    expect(failed).toMatchObject({ code: 'untrusted', retryable: false });
    expect(failed.message).toContain('offers no TLS');
    expect(await deliver(configOf(), sampleEvents(1))).toMatchObject({ rows: 1 });
    await Promise.all([allowed.close(), strict.close()]);
  });
});

describe('a connection that breaks', () => {
  test.each([[2_000], [200_000], [1_000_000]])(
    'after %d bytes: nothing is there, and the next attempt completes',
    async (bytes) => {
      const rows = sampleEvents(5_000, () => ({ elements_chain: 'x'.repeat(200) }));
      let limit = bytes;
      await withProxy({ cutAfter: () => limit }, async (port) => {
        const config = configOf({ port });
        await deliver(config, []).catch(() => undefined);
        const failed = await failureOf(deliver(config, rows));
        expect(failed).toMatchObject({ retryable: true });
        expect(['interrupted', 'unavailable']).toContain((failed as { code?: string }).code);
        const direct = { ...config, port: new URL(database.url).port };
        const [{ there }] = await query('select to_regclass($1) is not null as there', [config.table_name]);
        if (there)
          expect(await query(`select count(*) as count from ${config.table_name}`)).toEqual([{ count: 0 }]);
        limit = Number.POSITIVE_INFINITY;
        expect(await deliver(direct, rows)).toMatchObject({ written: 5_000 });
      });
    },
  );
});

describe('a user without rights', () => {
  const role = `limited_${process.pid}`;
  beforeAll(async () => {
    await query(`create role ${role} login password 'canary-of-a-role'`);
  });
  afterAll(async () => {
    await query(`drop owned by ${role}`);
    await query(`drop role ${role}`);
  });
  const limited = (more: RawConfig = {}) => configOf({ user: role, password: 'canary-of-a-role', ...more });
  const steps = (config: RawConfig) =>
    Promise.all(
      [0, 1, 2].map(
        async (index) => (await runTestStep({ type: 'Postgres', config }, index, surroundings))?.result,
      ),
    );

  test('to create the table', async () => {
    const config = limited();
    const failed = await failureOf(deliver(config, sampleEvents(1)));
    expect(failed).toMatchObject({ code: 'denied', retryable: false });
    expect(textOf(failed)).not.toMatch(/canary|limited_/);
    const results = await steps(config);
    expect(results.map((result) => result?.status)).toEqual(['Passed', 'Passed', 'Failed']);
    expect(JSON.stringify(results)).not.toMatch(/canary|limited_/);
  });

  test('to write to it', async () => {
    const config = limited();
    await query(`create table ${config.table_name} (uuid text primary key)`);
    expect(await failureOf(deliver(config, sampleEvents(1)))).toMatchObject({ code: 'denied' });
    await query(`grant insert on ${config.table_name} to ${role}`);
    expect((await steps(config))[2]?.message).toContain('needs the rights select and update');
  });

  test('in a schema that is not there', async () => {
    const config = configOf({ schema: 'nowhere' });
    expect(await failureOf(deliver(config, []))).toMatchObject({ code: 'missing', retryable: false });
    expect((await steps(config))[1]).toEqual({
      status: 'Failed',
      message: expect.stringContaining('There is no schema "nowhere"'),
    });
  });

  test('in a database that is not there', async () => {
    const config = configOf({ database: 'nowhere' });
    expect(await failureOf(deliver(config, []))).toMatchObject({ code: 'missing', retryable: false });
    expect((await steps(config))[0]?.status).toBe('Failed');
  });
});

test('cancelled while the server works, the connection ends and nothing stays', async () => {
  const config = configOf();
  await deliver(config, []);
  const controller = new AbortController();
  const blocker = await database.pool.connect();
  try {
    await blocker.query('begin');
    await blocker.query(`lock table ${config.table_name}`);
    const work = deliver(config, sampleEvents(10), { signal: controller.signal });
    await eventually(async () => {
      const [{ waiting }] = await query(
        `select count(*) as waiting from pg_stat_activity
         where datname = current_database() and application_name = 'sluice-export' and wait_event_type = 'Lock'`,
      );
      return waiting === 1;
    });
    controller.abort(new Error('cancelled'));
    expect((await failureOf(work)).message).toBe('cancelled');
    await blocker.query('rollback');
  } finally {
    blocker.release();
  }
  expect(await query(`select count(*) as count from ${config.table_name}`)).toEqual([{ count: 0 }]);
});
