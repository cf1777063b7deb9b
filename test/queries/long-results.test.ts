import { setTimeout as pause } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from '@jest/globals';
import type { ApiDependencies, App } from '../../api/dependencies.ts';
import { ResultPlaces } from '../../queries/result-places.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { apiForFile, type Tenant, tenantsForFile } from '../support/api.ts';
import { eventually, PATIENCE } from '../support/eventually.ts';
import {
  askForFile,
  bodyOf,
  ENDLESS,
  fileOf,
  LONG,
  many,
  OVERFLOW,
  type Raw,
  raw,
  running,
  select,
} from './result-files.ts';

const api = apiForFile();
const { anna, otto } = tenantsForFile(api, 'anna', 'otto');
let url: URL;

beforeAll(async () => {
  url = new URL(await api.app.listen({ host: '127.0.0.1', port: 0 }));
});

/** The API with other dependencies, for some work. */
async function withApi(changes: Partial<ApiDependencies>, work: (app: App) => Promise<void>): Promise<void> {
  const app = await api.rebuild(changes);
  try {
    await work(app);
  } finally {
    await app.close();
  }
}

describe('a long result', () => {
  const ROWS = 100_000;

  test('comes as fast as its client takes it, and no faster', async () => {
    const client = raw(url, anna, select(many(ROWS, LONG)), 'jsonl');
    await client.first;
    client.socket.pause();
    // Postgres goes on until all buffers on the way are full.
    let before = -1;
    const sent = await eventually(async () => {
      await pause(1_000);
      const { rows } = await api.pool.query('select bytes_processed as bytes from pg_stat_progress_copy');
      const now = rows[0] ? Number(rows[0].bytes) : Number.POSITIVE_INFINITY;
      const isStill = now === before;
      before = now;
      return isStill && now;
    });
    expect(sent).toBeLessThan((ROWS * 600) / 2);
    client.socket.resume();
    const { content, error } = await client.closed;
    expect(error).toBeUndefined();
    const lines = bodyOf(content).toString('latin1').trimEnd().split('\n');
    expect(lines.length).toBe(ROWS);
    expect(new Set(lines.map((line) => JSON.parse(line).n as number)).size).toBe(ROWS);
  });

  // Parquet is sent from its second group of rows on. The formats end the answer in the same way.
  test.each([
    ['csv', ROWS, ['1.0', '1.1']],
    ['jsonl', ROWS, ['1.1']],
    ['parquet', 2 * ROWS, ['1.1']],
    ['arrow', ROWS, ['1.1']],
  ] as const)('that fails at a late row is no whole %s', async (format, rows, versions) => {
    for (const version of versions) {
      const late = many(rows, `${OVERFLOW(rows - 1_000)} as high, ${LONG}`);
      const { content, error } = await raw(url, anna, select(late), format, version).closed;
      expect(content.toString('latin1', 0, 15)).toBe('HTTP/1.1 200 OK');
      expect(content.toString('latin1').endsWith('\r\n0\r\n\r\n')).toBe(false);
      expect(error?.code).toBe('ECONNRESET');
      await eventually(async () => (await running(api)) === 0);
    }
  });

  test('ends its query when the client leaves', async () => {
    const client = raw(url, anna, select(many(ENDLESS, LONG)), 'csv');
    await client.first;
    expect(await running(api)).toBe(1);
    client.socket.destroy();
    await eventually(async () => (await running(api)) === 0);
  });
  test('ends its query when the client leaves before the first row', async () => {
    const client = raw(
      url,
      anna,
      select(`select count() from (${many(ENDLESS, 'n % 3 as x')}) where x > 5`),
      'csv',
    );
    await eventually(async () => (await running(api)) === 1);
    client.socket.destroy();
    await eventually(async () => (await running(api)) === 0);
  });

  test('ends its query when the client takes a byte now and then, and then its place is free', async () => {
    const resultPlaces = new ResultPlaces({ atOnce: 2, perAsker: 1, patience: PATIENCE });
    await withApi({ takeMilliseconds: 500, resultPlaces }, async (app) => {
      const there = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
      const client = raw(there, anna, select(many(ENDLESS, LONG)), 'csv');
      await client.first;
      client.socket.pause();
      const sips = setInterval(() => client.socket.read(1), 10);
      const next = fileOf(there, anna, 'select 1 as one', 'csv');
      expect(String(await fileOf(there, otto, 'select 1 as one', 'csv'))).toBe('one\r\n1\r\n');
      expect(String(await next)).toBe('one\r\n1\r\n');
      expect(await running(api)).toBe(0);
      clearInterval(sips);
      client.socket.resume();
      expect((await client.closed).error?.code).toBe('ECONNRESET');
    });
  });

  test.each([
    ['has too many bytes', false, { SLUICE_QUERY_FILE_BYTES: 2_000_000 }, /larger than 2000000 bytes/],
    ['takes too long', false, { SLUICE_QUERY_FILE_SECONDS: 2 }, /longer than 2 seconds/],
    ['somebody reads slowly', true, { SLUICE_QUERY_FILE_SECONDS: 2 }, /longer than 2 seconds/],
  ])('that %s is cut off, which the log tells', async (_, isSlow, limit, message) => {
    const lines: { msg: string }[] = [];
    const logger = createLogger(
      { name: 'test', level: 'info' },
      { write: (line) => void lines.push(JSON.parse(line)) },
    );
    const config = { ...api.config, ...limit };
    await withApi({ logger, config, takeMilliseconds: PATIENCE }, async (app) => {
      const there = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
      const client = raw(there, anna, select(many(ENDLESS, LONG)), 'jsonl');
      await client.first;
      if (isSlow) client.socket.pause();
      await eventually(async () => (await running(api)) === 0);
      client.socket.resume();
      const { content, error } = await client.closed;
      expect([content.toString('latin1', 0, 15), error?.code]).toEqual(['HTTP/1.1 200 OK', 'ECONNRESET']);
    });
    expect(lines.filter(({ msg }) => msg === 'the result of a query was broken off')).toEqual([
      expect.objectContaining({
        projectId: anna.projectId,
        err: expect.objectContaining({ message: expect.stringMatching(message) }),
      }),
    ]);
  });

  test('gives its place up when its client is slow and another project waits, and not otherwise', async () => {
    const places = { atOnce: 1, perAsker: 1, window: 200 };
    const tried = async (resultPlaces: ResultPlaces) => {
      let end: unknown[] = [];
      await withApi({ takeMilliseconds: PATIENCE, resultPlaces }, async (app) => {
        const there = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
        const client = raw(there, anna, select(many(ENDLESS, LONG)), 'csv');
        await client.first;
        client.socket.pause();
        const next = await askForFile(there, otto, select('select 1 as one'), 'csv');
        end = [next.status, await running(api)];
        client.socket.destroy();
        await next.arrayBuffer();
      });
      return end;
    };
    expect(await tried(new ResultPlaces({ ...places, leastBytes: 0, patience: 1_000 }))).toEqual([503, 1]);
    expect(await tried(new ResultPlaces({ ...places, patience: PATIENCE }))).toEqual([200, 0]);
  });

  test('ends with the server', async () => {
    let client: Raw | undefined;
    await withApi({}, async (app) => {
      const there = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
      client = raw(there, anna, select(many(ENDLESS, LONG)), 'csv');
      await client.first;
    });
    expect((await client?.closed)?.error?.code).toBe('ECONNRESET');
    expect(await eventually(async () => (await running(api)) === 0)).toBe(true);
  });

  test('takes the place of its project, and of no other', async () => {
    const resultPlaces = new ResultPlaces({ atOnce: 2, perAsker: 1, patience: 500 });
    await withApi({ resultPlaces }, async (app) => {
      const there = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
      const client = raw(there, anna, select(many(ENDLESS, LONG)), 'csv');
      await client.first;
      const ask = (tenant: Tenant) =>
        app.inject({
          ...{ method: 'POST', url: `/api/projects/${tenant.projectId}/query/?format=csv` },
          headers: { authorization: `Bearer ${tenant.key}` },
          payload: { query: select('select 1 as one') },
        });
      const refused = await ask(anna);
      expect([refused.statusCode, refused.headers['retry-after'], refused.json().detail]).toEqual([
        429,
        '10',
        'Another result of this project is being written as a file. Wait for its end.',
      ]);
      expect((await ask(otto)).body).toBe('one\r\n1\r\n');
      client.socket.destroy();
      await eventually(async () => (await ask(anna)).statusCode === 200);
    });
  });
});
