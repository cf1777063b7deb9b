import { describe, expect, test } from '@jest/globals';
import { uuidv7 } from '../../../db/uuid.ts';
import {
  deleteOldLogs,
  insertLogs,
  type LogEntry,
  listLogs,
  MAX_RUN_ENTRIES,
  MAX_RUN_TROUBLES,
} from '../../../exports/rows/logs.ts';
import { databaseForFile } from '../../support/database.ts';

const database = databaseForFile();
const key = () => ({ projectId: 1, exportId: uuidv7() });
const entries = (level: LogEntry['level'], ...messages: string[]): LogEntry[] =>
  messages.map((message) => ({ level, message }));

describe('logs', () => {
  test('are found by run, level, time and words, newest first', async () => {
    const { pool } = database;
    const one = key();
    const [run, other] = [uuidv7(), uuidv7()];
    await insertLogs(pool, one, run, [
      ...entries('INFO', 'Starting', '100% of it'),
      ...entries('ERROR', 'It BROKE'),
    ]);
    await insertLogs(pool, one, other, entries('INFO', 'done'));
    await insertLogs(pool, one, null, entries('WARNING', 'paused'));
    await insertLogs(pool, key(), run, entries('INFO', 'of another export'));
    const messages = async (query: Partial<Parameters<typeof listLogs>[1]> = {}) =>
      (await listLogs(pool, { ...one, limit: 50, ...query })).map((row) => row.message);
    expect(await messages()).toEqual(['paused', 'done', 'It BROKE', '100% of it', 'Starting']);
    expect(await messages({ limit: 2 })).toEqual(['paused', 'done']);
    expect(await messages({ runId: run })).toEqual(['It BROKE', '100% of it', 'Starting']);
    expect(await messages({ levels: ['ERROR', 'WARNING'] })).toEqual(['paused', 'It BROKE']);
    expect(await messages({ search: 'broke' })).toEqual(['It BROKE']);
    expect(await messages({ search: '%' })).toEqual(['100% of it']);
    expect(await messages({ search: '_' })).toEqual([]);
    const [, done] = await listLogs(pool, { ...one, limit: 2 });
    expect(await messages({ after: done!.timestamp })).toEqual(['paused']);
    expect(await messages({ before: done!.timestamp })).toEqual(['It BROKE', '100% of it', 'Starting']);
  });

  test('are cleaned and cut', async () => {
    const one = key();
    await insertLogs(database.pool, one, null, entries('INFO', `a\0b\ud800${'x'.repeat(20_000)}`));
    const [row] = await listLogs(database.pool, { ...one, limit: 1 });
    expect(row?.message).toHaveLength(10_000);
    expect(row?.message.slice(0, 4)).toBe('ab\ufffdx');
    expect(row?.message.at(-1)).toBe('…');
  });

  test('of a run are bounded, and what goes wrong is still told', async () => {
    const { pool } = database;
    const one = key();
    const run = uuidv7();
    const many = entries('INFO', ...Array.from({ length: MAX_RUN_ENTRIES - 1 }, (_, n) => `${n}`));
    expect(await insertLogs(pool, one, run, many)).toBe(MAX_RUN_ENTRIES - 1);
    expect(await insertLogs(pool, one, run, entries('INFO', 'last', 'too much', 'too much'))).toBe(1);
    expect(await insertLogs(pool, one, run, entries('INFO', 'too much'))).toBe(0);
    const troubles = entries('ERROR', ...Array.from({ length: MAX_RUN_TROUBLES }, () => 'broken'));
    expect(await insertLogs(pool, one, run, troubles)).toBe(MAX_RUN_TROUBLES - MAX_RUN_ENTRIES);
    // Other runs, and the export itself, are not held back.
    expect(await insertLogs(pool, one, uuidv7(), entries('INFO', 'x'))).toBe(1);
    expect(await insertLogs(pool, one, null, entries('INFO', 'x'))).toBe(1);
  });

  test('old ones are deleted bit by bit', async () => {
    const { pool } = database;
    const one = key();
    await pool.query('delete from batch_export_logs');
    await insertLogs(pool, one, null, entries('INFO', 'a', 'b', 'c', 'd', 'e'));
    const [, , third] = await listLogs(pool, { ...one, limit: 5 });
    await pool.query("update batch_export_logs set timestamp = timestamp - interval '1 day' where id < $1", [
      third!.id,
    ]);
    const before = third!.timestamp;
    expect(await deleteOldLogs(pool, before, 1)).toBe(1);
    expect(await deleteOldLogs(pool, before, 10)).toBe(1);
    expect(await deleteOldLogs(pool, before, 10)).toBe(0);
    expect(await listLogs(pool, { ...one, limit: 5 })).toHaveLength(3);
  });
});
