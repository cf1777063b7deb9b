import { afterAll, beforeAll } from '@jest/globals';
import type pg from 'pg';
import type { Statement } from '../../../hog/sql/index.ts';
import { databaseForFile } from '../../support/database.ts';
import { createTables, type EventRow, insertEvents, SEARCH_PATH } from './tables.ts';

export interface EventsDatabase {
  query(statement: Pick<Statement, 'text' | 'values'>): Promise<unknown[][]>;
  replaceEvents(rows: EventRow[]): Promise<void>;
  client(): pg.PoolClient;
}

/** A database with the tables that the printed SQL reads, on one connection for all tests of a file. */
export function eventsDatabase(): EventsDatabase {
  let client: pg.PoolClient | undefined;
  // Hooks run in the order they are given in: the connection goes back before the database is dropped.
  afterAll(() => client?.release());
  const database = databaseForFile();
  const current = (): pg.PoolClient => {
    if (!client) throw new Error('The connection exists only while tests run.');
    return client;
  };
  beforeAll(async () => {
    client = await database.pool.connect();
    await createTables(client);
    await client.query(SEARCH_PATH);
  });
  return {
    client: current,
    async query({ text, values }) {
      const result = await current().query({ text, values, rowMode: 'array' });
      return result.rows as unknown[][];
    },
    async replaceEvents(rows) {
      await current().query('truncate hogql.events');
      await insertEvents(current(), rows);
    },
  };
}
