import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { foreignDatabaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { type PostgresProxyOptions, startPostgresProxy } from '../support/postgres-proxy.ts';
import { postgresSettings } from '../support/postgres-settings.ts';
import { programsForFile } from '../support/programs.ts';
import { exportWorldForFile, fillHour, hour } from './support.ts';
import { operatorForFile } from './whole-run.ts';

const programs = programsForFile();
const world = exportWorldForFile({ patience: { attempts: 2, delay: () => 10 } });
const target = foreignDatabaseForFile();
const operator = operatorForFile(programs, world);
const PASSWORD = 'canary-of-the-role';
const ROLE = `exporter_${process.pid}`;
let uuids: string[];
let many: string[];
let table = '';
let tables = 0;

beforeAll(async () => {
  uuids = (await fillHour(world.pool, 0, 40, operator.tenant.projectId)).sort();
  many = (await fillHour(world.pool, 1, 3_000, operator.tenant.projectId)).sort();
});
beforeEach(() => {
  tables += 1;
  table = `lake_${tables}`;
});

const sql = async (text: string) => (await target.pool.query(text)).rows;
const configOf = (more: object = {}) => ({ ...postgresSettings(target.url, table), ...more });
const patch = (path: string, config: object) =>
  operator.ask('PATCH', path, { destination: { type: 'Postgres', config } });
const uuidsIn = async (name: string) =>
  (await sql(`select uuid::text from ${name} order by uuid`)).map((row) => row.uuid);

/** How often the rows of a run were attempted: once more than it was to be repeated. */
async function attemptsOf(path: string, run: { id: string }): Promise<number> {
  const { results } = await operator.ask('GET', `${path}runs/${run.id}/logs/?level=WARNING`);
  return (
    results.filter(({ message }: { message: string }) => message.includes('will be repeated')).length + 1
  );
}

describe('what the operator has to mend', () => {
  beforeAll(async () => {
    await sql(`create role ${ROLE} login password '${PASSWORD}'`);
    await sql(
      `do $$ begin execute format('grant temporary on database %I to ${ROLE}', current_database()); end $$`,
    );
  });
  afterAll(() => sql(`drop owned by ${ROLE}; drop role ${ROLE}`));
  const asRole = { user: ROLE, password: PASSWORD };
  const trigger = (code: string) =>
    `create function ${table}_says() returns trigger language plpgsql as
       $$ begin raise exception 'it says %', '${code}' using errcode = '${code}'; end $$;
     create trigger says before insert on ${table} execute function ${table}_says()`;
  const own = 'uuid text primary key, event text, team_id int, properties jsonb';

  test.each<[string, { before?: () => string; config?: () => object; says: RegExp; mend: () => unknown }]>([
    [
      'a wrong password',
      {
        config: () => ({ ...asRole, password: `${PASSWORD}-of-before` }),
        says: /refuses this user or password.*in the configuration/,
        mend: () => asRole,
        before: () => `create table ${table} (${own}); grant all on ${table} to ${ROLE}`,
      },
    ],
    [
      'a database that is not there',
      {
        config: () => ({ database: 'nowhere' }),
        says: /there is no such database.*create it/,
        mend: () => ({ database: configOf().database }),
      },
    ],
    [
      'a schema that is not there',
      {
        config: () => ({ schema: table, table_name: 'events' }),
        says: /"lake_\d+\.events": there is no such schema.*create it/,
        mend: () => sql(`create schema ${table}`),
      },
    ],
    [
      'no right to create a table',
      {
        config: () => asRole,
        says: /lacks a right: it needs .*create.*permission denied for schema public/,
        mend: () => sql(`grant create on schema public to ${ROLE}`),
      },
    ],
    [
      'no right to write to the table',
      {
        before: () => `create table ${table} (${own})`,
        config: () => asRole,
        says: /lacks a right: it needs .*insert, select, update.*permission denied for table lake_\d+/,
        mend: () => sql(`grant insert, select, update on ${table} to ${ROLE}`),
      },
    ],
    [
      'a column of a type that rows do not fit',
      {
        before: () => `create table ${table} (${own}, timestamp integer)`,
        says: /column "timestamp" is of type integer/,
        mend: () => sql(`alter table ${table} drop column timestamp, add column timestamp timestamptz`),
      },
    ],
    [
      'a type that no value can be read as',
      {
        before: () => `create table ${table} (${own}, distinct_id integer)`,
        says: /takes none of the 40 rows \(column "distinct_id": invalid input syntax for type integer: "user-1"/,
        mend: () => sql(`alter table ${table} alter column distinct_id type text`),
      },
    ],
    [
      'no column to know a row by',
      {
        before: () => `create table ${table} (event text)`,
        says: /needs the columns team_id and uuid, or uuid/,
        mend: () => sql(`alter table ${table} add column uuid uuid`),
      },
    ],
    [
      'a column that has to be filled and is none of the export',
      {
        before: () => `create table ${table} (${own}, region text not null)`,
        says: /null value in column "region".*constraint/,
        mend: () => sql(`alter table ${table} alter column region set default 'eu'`),
      },
    ],
    [
      'a full disk',
      {
        before: () => `create table ${table} (${own}); ${trigger('53100')}`,
        says: /the disk of the server is full.*make room/,
        mend: () => sql(`drop trigger says on ${table}`),
      },
    ],
    [
      'a server that only reads',
      {
        before: () => `create table ${table} (${own}); ${trigger('25006')}`,
        says: /the server is read-only/,
        mend: () => sql(`drop trigger says on ${table}`),
      },
    ],
  ])('%s', async (_what, { before, config, says, mend }) => {
    if (before) await sql(before());
    const settings = configOf(config?.());
    const path = await operator.create('Postgres', settings);
    const run = await operator.run(path, hour(0));
    expect(run.status).toBe('Failed');
    expect(run.latest_error).toMatch(/^Postgres at 127\.0\.0\.1:\d+, table "/);
    // With what to do about it, and without anything secret.
    expect(run.latest_error.replaceAll('\n', ' ')).toMatch(says);
    expect(run.latest_error).not.toContain(PASSWORD);
    expect(await attemptsOf(path, run)).toBe(1);
    const { results } = await operator.ask('GET', `${path}runs/${run.id}/logs/?level=ERROR`);
    expect(results[0].message).toContain(run.latest_error);

    const mended = await mend();
    if (!Array.isArray(mended)) await patch(path, mended as object);
    const retried = await operator.retry(path, run);
    expect(retried).toMatchObject({ status: 'Completed', records_completed: 40, records_failed: 0 });
    const { schema = 'public', table_name } = settings as { schema?: string; table_name: string };
    expect(await uuidsIn(`${schema}.${table_name}`)).toEqual(uuids);
    expect(await operator.verify(path, { run_id: retried.id })).toMatchObject({
      verdict: 'same',
      destination: { rows: 40 },
    });
  });

  test('a table of persons without a key, which would double them', async () => {
    await sql(`create table ${table} (team_id int, distinct_id text, person_id text, properties jsonb,
      person_version bigint, person_distinct_id_version bigint)`);
    const path = await operator.create('Postgres', configOf(), { model: 'persons' });
    const run = await operator.run(path, hour(0));
    expect(run).toMatchObject({ status: 'Failed' });
    expect(run.latest_error).toMatch(/needs a primary key or a unique index on \(team_id, distinct_id\)/);
    await sql(`alter table ${table} add primary key (team_id, distinct_id)`);
    expect(await operator.retry(path, run)).toMatchObject({ status: 'Completed' });
  });
});

describe('what passes by itself', () => {
  const through = async <T>(watch: PostgresProxyOptions['watch'], work: (port: number) => Promise<T>) => {
    const behind = Number(new URL(target.url).port);
    const proxy = await startPostgresProxy({ behind, ...(watch ? { watch } : {}) });
    return work(proxy.port).finally(proxy.close);
  };
  const troubleOf = (path: string) =>
    eventually(async () => {
      const { results } = await operator.ask('GET', `${path}runs/`);
      expect(['Starting', 'Running']).toContain(results[0]?.status ?? 'Starting');
      return (results[0]?.latest_error ?? undefined) as string | undefined;
    });

  test.each([
    ['a table that it made', () => ''],
    ['a table without a unique index', () => `create table ${table} (uuid text, event text)`],
  ])('a connection that is cut in the middle of a COPY into %s', async (_what, before) => {
    const made = before();
    if (made) await sql(made);
    let cuts = 0;
    const watch = (_piece: Buffer, bytes: number) => {
      if (cuts >= 2 || bytes < 200_000) return undefined;
      cuts += 1;
      return 'cut' as const;
    };
    await through(watch, async (port) => {
      const path = await operator.create('Postgres', configOf({ port }));
      await operator.ask('POST', `${path}run/`, { start_at: hour(1) });
      expect(await troubleOf(path)).toMatch(/the connection (broke|was cut)/);
      const run = await operator.lastRun(path);
      expect(run).toMatchObject({ status: 'Completed', records_completed: 3_000, latest_error: null });
      expect(cuts).toBe(2);
      expect(await attemptsOf(path, run)).toBe(3);
      expect(await uuidsIn(table)).toEqual(many);
    });
  });

  test('a connection that is cut when all is said and the answer is on its way', async () => {
    let cuts = 0;
    const watch = (piece: Buffer) => {
      if (cuts > 0 || !piece.includes('commit')) return undefined;
      cuts += 1;
      return 'last' as const;
    };
    await sql(`create table ${table} (uuid text primary key, event text)`);
    await through(watch, async (port) => {
      const path = await operator.create('Postgres', configOf({ port }));
      const run = await operator.run(path, hour(0));
      expect(run).toMatchObject({ status: 'Completed', records_completed: 40, latest_error: null });
      expect(cuts).toBe(1);
      expect(await attemptsOf(path, run)).toBe(2);
      expect(await uuidsIn(table)).toEqual(uuids);
    });
  });

  test('a user whose statements may take less than the export needs', async () => {
    const role = `${ROLE}_hasty`;
    await sql(
      `create role ${role} login password '${PASSWORD}'; alter role ${role} set statement_timeout = '500ms'`,
    );
    await sql(`create table ${table} (uuid text primary key, event text);
      create function ${table}_waits() returns trigger language plpgsql as
        $$ begin perform pg_sleep(1); return null; end $$;
      create trigger waits before insert on ${table} for each statement execute function ${table}_waits();
      grant all on ${table} to ${role}`);
    const path = await operator.create('Postgres', configOf({ user: role, password: PASSWORD }));
    const run = await operator.run(path, hour(0));
    expect(run).toMatchObject({ status: 'Completed', records_completed: 40, latest_error: null });
    expect(await uuidsIn(table)).toEqual(uuids);
    await sql(`drop owned by ${role}; drop role ${role}`);
  });

  test('no connection left for the user', async () => {
    const role = `${ROLE}_busy`;
    await sql(`create role ${role} login password '${PASSWORD}' connection limit 0`);
    await sql(`create table ${table} (uuid text primary key, event text); grant all on ${table} to ${role}`);
    await sql(
      `do $$ begin execute format('grant temporary on database %I to ${role}', current_database()); end $$`,
    );
    const path = await operator.create('Postgres', configOf({ user: role, password: PASSWORD }));
    await operator.ask('POST', `${path}run/`, { start_at: hour(0) });
    expect(await troubleOf(path)).toMatch(/lacks resources.*too many connections/);
    await sql(`alter role ${role} connection limit -1`);
    expect(await operator.lastRun(path)).toMatchObject({ status: 'Completed', records_completed: 40 });
    expect(await uuidsIn(table)).toEqual(uuids);
    await sql(`drop owned by ${role}; drop role ${role}`);
  });
});
