import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll } from '@jest/globals';
import pg from 'pg';
import { createPool, type Pool } from '../../db/pool.ts';
import { PATIENCE } from './eventually.ts';
import { TEMPLATE_DATABASE } from './names.ts';

export interface TestDatabase {
  /** Address of the database, for processes and pools of the test's own. */
  url: string;
  pool: Pool;
  /** Connections of the role that runs what users write. */
  reader: Pool;
}

/** The address of a database for the reader. All test databases share its role, because they are clones. */
export function asReader(address: string): string {
  const url = new URL(address);
  const [user, password] = (process.env.TEST_POSTGRES_READER as string).split(':');
  Object.assign(url, { username: user, password });
  return url.href;
}

function adminUrl(): string {
  const url = process.env.TEST_POSTGRES_URL;
  if (!url) throw new Error('This test needs Postgres, but the run was started with TEST_NO_SERVICES=1.');
  return url;
}

/** Runs statements on the server itself rather than in one database. */
async function onServer<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: adminUrl(), application_name: 'test-admin' });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

async function createDatabase(template: string): Promise<TestDatabase & { name: string }> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  // Files are copied at a third of what writing the template to the log takes, and they are small.
  await onServer((client) => client.query(`create database ${name} template ${template} strategy file_copy`));
  const url = new URL(adminUrl());
  url.pathname = `/${name}`;
  return {
    name,
    url: url.href,
    pool: createPool({ url: url.href, size: 10, name: 'test', connecting: PATIENCE }),
    reader: createPool({ url: asReader(url.href), size: 10, name: 'test-reader', connecting: PATIENCE }),
  };
}

/** Drops the database; fails when the test left connections to it open. `patience`: how long those may take to end. */
async function dropDatabase(
  database: TestDatabase & { name: string },
  patience: number = PATIENCE,
): Promise<void> {
  const { name, pool, reader } = database;
  const borrowed = pool.totalCount - pool.idleCount;
  // end() waits for borrowed connections, for ever if they are never given back.
  if (borrowed === 0 && !pool.ended) await pool.end();
  if (reader.totalCount === reader.idleCount && !reader.ended) await reader.end();
  await onServer(async (client) => {
    // A server process outlives its connection, by a moment as a rule.
    const end = Date.now() + patience;
    let open = await connections(client, name);
    while (open.length > 0 && borrowed === 0 && Date.now() < end) {
      await pause(20);
      open = await connections(client, name);
    }
    await client.query(`drop database ${name} with (force)`);
    if (borrowed > 0) void pool.end();
    if (open.length > 0) {
      throw new Error(
        `The test left ${open.length} connection(s) to its database open${borrowed > 0 ? `, ${borrowed} of them borrowed from the pool` : ''}:\n  ${open.join('\n  ')}`,
      );
    }
  });
}

async function connections(client: pg.Client, name: string): Promise<string[]> {
  const { rows } = await client.query(
    `select format('%s, %s, last query: %s', application_name, state, left(query, 200)) as connection
     from pg_stat_activity where datname = $1 and backend_type = 'client backend' order by pid`,
    [name],
  );
  return rows.map((row) => row.connection);
}

/** Runs `work` with a migrated database of its own, which is gone afterwards. */
export async function withDatabase<T>(
  work: (database: TestDatabase) => Promise<T>,
  { patience }: { patience?: number } = {},
): Promise<T> {
  const database = await createDatabase(TEMPLATE_DATABASE);
  try {
    return await work(database);
  } finally {
    await dropDatabase(database, patience);
  }
}

/** One migrated database for all tests of a file (or of a `describe`); usable inside tests and later hooks. */
export const databaseForFile = (): TestDatabase => databaseOf(TEMPLATE_DATABASE);

/** The same, but a database that has nothing of Sluice: for what Sluice exports to. */
export const foreignDatabaseForFile = (): TestDatabase => databaseOf('template0');

function databaseOf(template: string): TestDatabase {
  let database: (TestDatabase & { name: string }) | undefined;
  const current = () => {
    if (!database) throw new Error('The database exists only while tests and hooks run.');
    return database;
  };
  beforeAll(async () => {
    database = await createDatabase(template);
  });
  afterAll(async () => {
    if (database) await dropDatabase(database);
  });
  return {
    get url() {
      return current().url;
    },
    get pool() {
      return current().pool;
    },
    get reader() {
      return current().reader;
    },
  };
}
