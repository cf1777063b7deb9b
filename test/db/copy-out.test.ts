import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { to as copyTo } from 'pg-copy-streams';
import { CopyMessages } from '../../db/copy-messages.ts';
import { type CopyOutOptions, copyOut } from '../../db/copy-out.ts';
import { isStatementTimeout } from '../../db/reading.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';

const database = databaseForFile();

const copy = (select: string) => `copy (${select}) to stdout (format binary)`;
const MANY = copy('select n, repeat(md5(n::text), 20) as text from generate_series(1, 100000) n');

async function readAll(
  text: string,
  options?: CopyOutOptions,
): Promise<{ bytes: Buffer; rows: number | undefined }> {
  const read = copyOut(database.pool, text, options);
  const chunks: Buffer[] = [];
  for await (const chunk of read) chunks.push(Buffer.from(chunk));
  return { bytes: Buffer.concat(chunks), rows: read.rows };
}

/** Reads until it fails; answers what was thrown, and whether anything had come before. */
async function failure(
  text: string,
  options?: CopyOutOptions,
  during: (bytes: number) => unknown = () => undefined,
) {
  let bytes = 0;
  try {
    for await (const chunk of copyOut(database.pool, text, options)) {
      bytes += chunk.length;
      await during(bytes);
    }
  } catch (error) {
    return { error: error as Error & { code?: string }, bytes };
  }
  throw new Error(`It ended as if it were whole, with ${bytes} bytes`);
}

/** What of the pool is lent; nothing when a test is over. */
const lent = () => database.pool.totalCount - database.pool.idleCount;
const backends = async (what: string) =>
  (
    await database.pool.query(
      'select pid, state from pg_stat_activity where datname = current_database() and query like $1 and pid <> pg_backend_pid()',
      [`%${what}%`],
    )
  ).rows;

describe('messages', () => {
  const message = (type: string, body: Buffer) => {
    const head = Buffer.alloc(5);
    head.write(type, 'latin1');
    head.writeUInt32BE(body.length + 4, 1);
    return Buffer.concat([head, body]);
  };
  const messages = fc.array(
    fc.tuple(
      fc.constantFrom('d', 'd', 'd', 'H', 'N', 'C'),
      fc.uint8Array({ maxLength: 40 }).map((one) => Buffer.from(one)),
    ),
    { maxLength: 30 },
  );

  test('are told apart wherever the chunks are cut', () => {
    fc.assert(
      fc.property(messages, fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1 }), (sent, cuts) => {
        const wire = Buffer.concat([
          ...sent.map(([type, body]) => message(type, body)),
          message('Z', Buffer.of(0x49)),
        ]);
        const others: Buffer[] = [];
        const reader = new CopyMessages((bytes) => others.push(bytes));
        const data: Buffer[] = [];
        let at = 0;
        for (let i = 0; at < wire.length; i += 1) {
          expect(reader.ready).toBe(false);
          const end = Math.min(wire.length, at + (cuts[i % cuts.length] as number));
          data.push(Buffer.from(reader.take(Buffer.from(wire.subarray(at, end)))));
          at = end;
        }
        const of = (wanted: (type: string) => boolean) => sent.filter(([type]) => wanted(type));
        expect(Buffer.concat(data)).toEqual(
          Buffer.concat(of((type) => type === 'd').map(([, body]) => body)),
        );
        expect(Buffer.concat(others)).toEqual(
          Buffer.concat([
            ...of((type) => type !== 'd').map(([type, body]) => message(type, body)),
            message('Z', Buffer.of(0x49)),
          ]),
        );
        expect(reader.ready).toBe(true);
      }),
    );
  });
});

describe('reading a COPY', () => {
  test('gives the bytes that the driver gives, and the number of rows', async () => {
    for (const text of [MANY, copy('select 1 where false'), copy('select null::text, 5::int8')]) {
      const client = await database.pool.connect();
      const chunks: Buffer[] = [];
      for await (const chunk of client.query(copyTo(text))) chunks.push(chunk);
      client.release();
      const read = await readAll(text);
      expect(read.bytes.equals(Buffer.concat(chunks))).toBe(true);
    }
    expect((await readAll(MANY)).rows).toBe(100_000);
    expect((await readAll(copy('select 1 where false'))).rows).toBe(0);
    expect(lent()).toBe(0);
  });

  test('leaves a connection that works, outside of any transaction and without its settings', async () => {
    await database.pool.query('select 1');
    const before = database.pool.totalCount;
    await readAll(copy("select current_setting('work_mem')"), { settings: { work_mem: '77MB' } });
    expect(database.pool.totalCount).toBe(before);
    const { rows } = await database.pool.query(
      "select current_setting('work_mem') as memory, current_setting('statement_timeout') as timeout",
    );
    expect(rows[0].memory).not.toBe('77MB');
    expect(rows[0].timeout).toBe('0');
  });

  test('has the settings, and changes nothing', async () => {
    const read = await readAll(copy("select current_setting('work_mem')"), {
      settings: { work_mem: '77MB' },
    });
    expect(read.bytes.includes('77MB')).toBe(true);
    await database.pool.query('create table if not exists untouched (n int)');
    const { error } = await failure('copy (insert into untouched values (1) returning n) to stdout');
    expect(error.code).toBe('25006');
    expect(lent()).toBe(0);
  });

  test('a text in the settings cannot become more than a text', async () => {
    const settings = { application_name: "a'; drop table events; --" };
    const read = await readAll(copy("select current_setting('application_name')"), { settings });
    expect(read.bytes.includes(settings.application_name)).toBe(true);
    expect((await database.pool.query('select count(*)::int as n from events')).rows).toEqual([{ n: 0 }]);
  });

  test('an error in the middle is thrown, after whatever came before it', async () => {
    const { error, bytes } = await failure(
      copy("select repeat('x', 1000), 1 / (200000 - n) from generate_series(1, 300000) n"),
    );
    expect(error.code).toBe('22012');
    expect(bytes).toBeGreaterThan(0);
    expect(lent()).toBe(0);
    expect((await readAll(MANY)).rows).toBe(100_000);
  });

  test('a lost connection is thrown', async () => {
    let ended = false;
    const { error } = await failure(
      copy("select repeat('lost', 1000) from generate_series(1, 1000000)"),
      {},
      async () => {
        if (ended) return;
        ended = true;
        for (const { pid } of await backends('lost'))
          await database.pool.query('select pg_terminate_backend($1)', [pid]);
      },
    );
    expect(`${error.code} ${error.message}`).toMatch(/57P01|terminated|ECONNRESET|EPIPE/);
    expect(lent()).toBe(0);
  });

  test('Postgres ends what takes too long', async () => {
    const { error } = await failure(copy('select pg_sleep(60)'), { timeoutMs: 50 });
    expect(isStatementTimeout(error)).toBe(true);
  });

  test('a reader that is slow is waited for', async () => {
    const read = copyOut(database.pool, copy("select repeat('slow', 1000) from generate_series(1, 60000) n"));
    let held = 0;
    // Postgres wants to write, and nothing more is taken from it.
    const stands = async () => {
      const before = held;
      held = process.memoryUsage().arrayBuffers;
      const { rowCount } = await database.pool.query(
        "select 1 from pg_stat_activity where query like '%slow%' and wait_event = 'ClientWrite' and datname = current_database()",
      );
      return rowCount === 1 && Math.abs(held - before) < 500_000;
    };
    let bytes = 0;
    for await (const chunk of read) {
      if (bytes === 0) await eventually(stands);
      bytes += chunk.length;
    }
    expect(read.rows).toBe(60_000);
    expect(bytes).toBeGreaterThan(240_000_000);
  });

  test('the signal ends it, also while nothing comes, and Postgres stops', async () => {
    for (const text of [
      copy("select 'stopped', pg_sleep(600)"),
      copy("select repeat('stopped', 1000) from generate_series(1, 100000000)"),
    ]) {
      const stop = new AbortController();
      const failed = failure(text, { signal: stop.signal });
      await eventually(async () => (await backends('stopped')).length === 1);
      stop.abort(new Error('enough'));
      expect((await failed).error.message).toBe('enough');
      await eventually(async () => (await backends('stopped')).length === 0);
    }
    expect(lent()).toBe(0);
  });

  test('a signal that was given before keeps it from beginning', async () => {
    const { error, bytes } = await failure(MANY, { signal: AbortSignal.abort(new Error('too late')) });
    expect([error.message, bytes]).toEqual(['too late', 0]);
  });

  test('a reader that stops early gives the connection up', async () => {
    for await (const chunk of copyOut(
      database.pool,
      copy("select repeat('early', 1000) from generate_series(1, 10000000)"),
    )) {
      expect(chunk.length).toBeGreaterThan(0);
      break;
    }
    expect(lent()).toBe(0);
    await eventually(async () => (await backends('early')).length === 0);
  });

  test('a row that is too long is refused before it comes, and the connection is given up', async () => {
    const { error, bytes } = await failure(
      copy("select repeat('x', 150000000 * (n / 3)) as wide from generate_series(1, 4) n"),
    );
    expect([error.name, error.code]).toEqual(['RowTooLongError', '54000']);
    expect(error.message).toMatch(/^a row of 1500000\d\d bytes is longer than 134217728 bytes$/);
    // The rows before it, at most a chunk of it.
    expect(bytes).toBeLessThan(1_000_000);
    expect(lent()).toBe(0);
    await eventually(async () => (await backends('wide')).length === 0);
  });

  test('is one snapshot: what is committed meanwhile is not in it', async () => {
    await database.pool.query(
      "create table growing as select repeat('x', 2000) as text from generate_series(1, 20000)",
    );
    let added = false;
    const read = copyOut(database.pool, copy('select text from growing'));
    for await (const _chunk of read) {
      if (!added)
        await database.pool.query("insert into growing select 'late' from generate_series(1, 1000)");
      added = true;
    }
    expect(read.rows).toBe(20_000);
  });
});
