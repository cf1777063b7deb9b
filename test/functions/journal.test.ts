import { randomUUID } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { createJournal, type Entry } from '../../functions/journal.ts';
import { insertFunction } from '../../functions/rows/functions.ts';
import { databaseForFile } from '../support/database.ts';

const database = databaseForFile();

async function functionOf(projectId: number): Promise<string> {
  const id = randomUUID();
  await insertFunction(database.pool, {
    ...{ project_id: projectId, id, type: 'source_webhook', description: '', enabled: true, hog: 'return 1' },
    ...{ inputs_schema: [], inputs: {}, filters: {} },
  });
  return id;
}

const entry = (projectId: number, functionId: string, message = 'a line'): Entry => ({
  ...{ projectId, functionId, instanceId: randomUUID() },
  logs: [{ level: 'info', timestamp: new Date().toISOString(), message }],
  counts: [{ kind: 'success', name: 'succeeded', count: 1 }],
});
const stored = async (functionId: string) => {
  const { rows } = await database.pool.query(
    `select (select count(*)::int from function_logs where function_id = $1) as logs,
       (select coalesce(sum(count), 0)::int from function_metrics where function_id = $1) as counts`,
    [functionId],
  );
  return rows[0];
};

test('many entries are one statement for logs and one for counts; those of functions that are gone are left out', async () => {
  const statements: string[] = [];
  const queryable = {
    query: (...given: Parameters<typeof database.pool.query>) => {
      statements.push(String(given[0]));
      return database.pool.query(...given);
    },
  } as typeof database.pool;
  const journal = createJournal({ queryable, flushEvery: 3_600_000 });
  const [one, two] = [await functionOf(1), await functionOf(2)];
  for (let times = 0; times < 100; times += 1) journal.add(entry(1, one));
  journal.add(entry(2, two, 'a NUL \0 and half a pair \ud800'));
  journal.add(entry(1, randomUUID()));
  // The id of another project's function.
  journal.add(entry(1, two));
  await journal.flush();
  expect(statements).toHaveLength(2);
  expect(await stored(one)).toEqual({ logs: 100, counts: 100 });
  expect(await stored(two)).toEqual({ logs: 1, counts: 1 });
  await journal.close();
});

test('a project that floods fills its own part of the logs; all counts stay', async () => {
  const journal = createJournal({
    queryable: database.pool,
    flushEvery: 3_600_000,
    mostCharactersOfOne: 10_000,
  });
  const [loud, quiet] = [await functionOf(1), await functionOf(2)];
  for (let times = 0; times < 100; times += 1) journal.add(entry(1, loud, 'x'.repeat(800)));
  journal.add(entry(2, quiet));
  await journal.close();
  expect(await stored(loud)).toEqual({ logs: 10, counts: 100 });
  expect(await stored(quiet)).toEqual({ logs: 1, counts: 1 });
});

test('counts that could not be written are written later', async () => {
  let isAway = true;
  const queryable = {
    query: (...given: Parameters<typeof database.pool.query>) => {
      if (isAway) return Promise.reject(new Error('away'));
      return database.pool.query(...given);
    },
  } as typeof database.pool;
  const journal = createJournal({ queryable, flushEvery: 3_600_000 });
  const id = await functionOf(1);
  journal.add(entry(1, id));
  await expect(journal.flush()).rejects.toThrow('away');
  isAway = false;
  journal.add(entry(1, id));
  await journal.close();
  expect((await stored(id)).counts).toBe(2);
});
