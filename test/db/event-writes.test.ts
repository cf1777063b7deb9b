import { afterEach, expect, test } from '@jest/globals';
import { IdRows } from '../../capture/ingest/event-row.ts';
import { openWithNewIds, openWithSomeNewIds } from '../../db/event-writes.ts';
import { lockPersons } from '../../db/person-writes.ts';
import type { Transaction } from '../../db/pool.ts';
import { databaseForFile } from '../support/database.ts';

const database = databaseForFile();
let client: Transaction | undefined;
afterEach(async () => {
  await client?.query('rollback');
  client?.release(true);
});

test.each([
  [
    'all of whose ids are new',
    (to: Transaction) =>
      openWithNewIds(to, (sink) => new IdRows((chunk) => sink.write(chunk, () => undefined)).end()),
  ],
  [
    'some of whose ids may be known',
    (to: Transaction) => openWithSomeNewIds(to, [], () => ({ projectId: 1, uuid: '', timestamp: 0 })),
  ],
])('a transaction %s does not plan its statements again', async (_name, open) => {
  client = await database.pool.connect();
  for (const many of [1, 2, 3]) {
    await open(client);
    await lockPersons(
      client,
      Array.from({ length: many }, (_, id) => ({
        projectId: 1,
        id: `00000000-0000-7000-8000-00000000000${id}`,
      })),
    );
    await client.query('commit');
  }
  const { rows } = await client.query(
    `select custom_plans as again, generic_plans as kept from pg_prepared_statements where name = 'lock-persons'`,
  );
  expect(rows).toEqual([{ again: 0, kept: 3 }]);
  // Other transactions of the connection go on as Postgres thinks best.
  const { rows: settings } = await client.query('show plan_cache_mode');
  expect(settings).toEqual([{ plan_cache_mode: 'auto' }]);
});
