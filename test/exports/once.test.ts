import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { uuidv7 } from '../../db/uuid.ts';
import { hasBatchExports } from '../../exports/rows/batch-exports.ts';
import { expireExportHistory } from '../../exports/runs/upkeep.ts';
import { foreignDatabaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { faultyS3ForFile } from '../support/faulty-s3.ts';
import { startPostgresProxy } from '../support/postgres-proxy.ts';
import { postgresSettings } from '../support/postgres-settings.ts';
import { programsForFile } from '../support/programs.ts';
import { insertEvents } from '../support/rows.ts';
import { exportWorldForFile, FIRST, filesIn } from './support.ts';
import { operatorForFile } from './whole-run.ts';

const programs = programsForFile();
const s3 = faultyS3ForFile();
const world = exportWorldForFile();
const target = foreignDatabaseForFile();
const operator = operatorForFile(programs, world);
const THEIRS = 900_002;

const QUERY = `with late as (select event, toInt(properties.n) as n from events where timestamp < now() and event != 'late')
  select l.event as event, count() as times, max(l.n) as most, uniq(p.id) as people, [l.event] as words,
    toUUID('018f0000-0000-7000-8000-000000000001') as id, tuple(1, 'a') as pair
  from late l left join persons p on p.id = p.id and l.event = 'bought' group by l.event order by event desc limit 60000`;
const ROWS = [
  { event: 'bought', times: 5, most: 8, people: 1 },
  { event: '$pageview', times: 5, most: 9, people: 0 },
].map((row) => ({
  ...row,
  ...{ words: [row.event], id: '018f0000-0000-7000-8000-000000000001', pair: [1, 'a'] },
}));

/** Events of this week: of weeks that are over, queries read those that capture wrote down. */
const fill = (projectId: number, count: number, event?: string) =>
  insertEvents(
    world.pool,
    Array.from({ length: count }, (_, n) => ({
      ...{ project_id: projectId, event: event ?? (n % 2 === 0 ? 'bought' : '$pageview') },
      ...{ properties: { n }, timestamp: new Date(Date.now() - 60_000).toISOString() },
    })),
  );

beforeAll(async () => {
  await fill(operator.tenant.projectId, 10);
  await fill(THEIRS, 30);
  const since = new Date(FIRST).toISOString();
  for (const project of [operator.tenant.projectId, THEIRS, THEIRS]) {
    await world.pool.query('insert into persons values ($1, $2, $3, true, $4, 3, $5)', [
      ...[project, uuidv7(), since, { name: 'ann' }, since],
    ]);
  }
});

/** Asks again while the machine is too busy to read a query in the seconds that a request has for it. */
const patiently = <T>(work: () => Promise<T>): Promise<T> =>
  eventually(() =>
    work().catch((error: Error) => {
      if (!error.message.includes('takes too long to read')) throw error;
    }),
  ) as Promise<T>;
const once = (type: string, config: object, query = QUERY) =>
  patiently(() => operator.create(type, config, { interval: 'once', hogql_query: query }));
/** Its run, when the backfill has ended too that has this run. */
const ended = async (at: string) => {
  const run = await operator.lastRun(at);
  await eventually(async () => {
    const { results } = await operator.ask('GET', `${at}backfills/`);
    return results.every(({ status }: { status: string }) => !['Starting', 'Running'].includes(status));
  });
  return run;
};
const inFolder = (folder: string) =>
  path.join(world.root, '@projects', String(operator.tenant.projectId), folder);
const lines = (text: string) =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
const refused = (method: string, at: string, body?: object) =>
  operator.ask(method, at, body).then(
    () => 'accepted',
    (error: Error) => error.message,
  );

describe('the whole result of a query', () => {
  test('goes to files, whose manifest comes last, and shows as a run like others', async () => {
    const at = await once('File', { directory: 'lines', file_format: 'JSONLines' });
    const run = await operator.lastRun(at);
    expect([run.status, run.latest_error, run.records_completed]).toEqual(['Completed', null, 2]);
    const shown = await operator.ask('GET', at);
    expect(shown).toMatchObject({
      model: 'hogql',
      interval: 'once',
      paused: false,
      schema: null,
      missing: null,
    });
    expect(shown.latest_runs.map((one: { id: string }) => one.id)).toEqual([run.id]);
    const [file, manifest] = filesIn(inFolder('lines'));
    expect(manifest).toMatch(/^None-.*_manifest\.json$/);
    const folder = inFolder('lines');
    expect(JSON.parse(readFileSync(path.join(folder, manifest as string), 'utf8'))).toMatchObject({
      ...{ run_id: run.id, model: 'hogql', rows: 2 },
    });
    expect(lines(readFileSync(path.join(folder, file as string), 'utf8'))).toEqual(ROWS);
    const logs = await operator.ask('GET', `${at}runs/${run.id}/logs/`);
    expect(JSON.stringify(logs)).toContain('finished successfully with 2 records');
    // It has no schedule that would run it again.
    await expect(world.client.schedule.getHandle(at.slice(0, -1)).describe()).rejects.toThrow();
  });

  test('is replaced by a retry, which reads again what is there then', async () => {
    const query = "select count() as n, max(toInt(properties.n)) as most from events where event != 'bought'";
    const at = await once('File', { directory: 'again', file_format: 'JSONLines' }, query);
    const first = await ended(at);
    const before = filesIn(inFolder('again'));
    await fill(operator.tenant.projectId, 1, 'late');
    const [of] = (await operator.ask('GET', `${at}backfills/`)).results;
    const isNow = (status: string) =>
      world.pool.query('update batch_export_backfills set status = $2 where id = $1', [of.id, status]);
    // Its run has ended, and it is about to: a retry must not take it for one of its own.
    await isNow('Running');
    expect(await refused('POST', `${at}runs/${first.id}/retry/`)).toMatch(/409.*just ending/);
    await isNow('Completed');
    const second = await operator.retry(at, first);
    expect([first.status, second.status]).toEqual(['Completed', 'Completed']);
    expect(second.id).not.toBe(first.id);
    expect(filesIn(inFolder('again'))).toEqual(before);
    expect(lines(readFileSync(path.join(inFolder('again'), before[0] as string), 'utf8'))).toEqual([
      { n: 6, most: 9 },
    ]);
  });

  test('goes to a bucket', async () => {
    const bucket = await s3.bucket('lake/once');
    const at = await once('S3', { ...bucket.config, file_format: 'JSONLines' });
    const run = await operator.lastRun(at);
    expect(run.status).toBe('Completed');
    const manifest = JSON.parse((await bucket.read(run.manifest_key)).toString());
    const found = await bucket.read(manifest.files[0].key);
    expect(lines(found.toString())).toEqual(ROWS);
  });

  test('goes to a table of its own, which a retry replaces', async () => {
    const at = await once('Postgres', postgresSettings(target.url, 'of_a_query'));
    const read = async () => {
      const { rows } = await target.pool.query(
        'select row_to_json(t) as row from of_a_query as t order by event desc',
      );
      return rows.map(({ row }) => row);
    };
    const run = await ended(at);
    expect([run.status, run.latest_error]).toEqual(['Completed', null]);
    expect(await read()).toEqual(ROWS);
    expect((await operator.retry(at, run)).status).toBe('Completed');
    expect(await read()).toEqual(ROWS);
    const { rows: types } = await target.pool.query(
      `select column_name as name, data_type as type from information_schema.columns where table_name = 'of_a_query'`,
    );
    expect(Object.fromEntries(types.map(({ name, type }) => [name, type]))).toMatchObject({
      ...{ event: 'text', times: 'bigint', words: 'ARRAY', pair: 'jsonb' },
    });
    const report = await operator.verify(at, {});
    expect(report).toMatchObject({ verdict: 'unknown', source: { state: 'once' } });
    expect(report.problems.join()).toContain('cannot be compared');
  });

  describe('with a value that a table cannot hold', () => {
    const QUERY_OF = (event: string) =>
      `select toInt(properties.k) as n, properties as doc from events where event = '${event}' order by n`;
    /** Events of which some have a number that a document of an event may have, and `jsonb` may not. */
    const fillWith = async (event: string, few: number[]) => {
      await fill(operator.tenant.projectId, 5, event);
      await world.pool.query(
        `update events set properties = format('{"k": %s, "x": %s}', n, case when n = any($3::int[]) then '1e200000' else '1' end)::json
         from (select uuid, row_number() over (order by uuid) as n from events where project_id = $1 and event = $2) as numbered
         where project_id = $1 and events.uuid = numbered.uuid`,
        [operator.tenant.projectId, event, few],
      );
    };

    afterAll(async () => {
      await world.pool.query(`delete from events where event in ('some', 'none')`);
    });

    test('leaves that row out, and says which row and which column it is', async () => {
      await fillWith('some', [2, 4]);
      const at = await once('Postgres', postgresSettings(target.url, 'of_some'), QUERY_OF('some'));
      const run = await ended(at);
      expect([run.status, run.latest_error, run.records_completed, run.records_failed]).toEqual([
        ...['Completed', null],
        ...[3, 2],
      ]);
      const { rows } = await target.pool.query(`select n::int, doc ->> 'k' as said from of_some order by n`);
      expect(rows).toEqual([1, 3, 5].map((n) => ({ n, said: String(n) })));
      const { results } = await operator.ask('GET', `${at}runs/${run.id}/logs/`);
      const left = results.filter(({ message }: { message: string }) => message.startsWith('Left out'));
      expect(left.map(({ message }: { message: string }) => message).sort()).toEqual(
        [2, 4].map((n) => expect.stringMatching(`^Left out row ${n}: column "doc": .*numeric`)),
      );
      // A retry replaces them as it replaces all rows.
      expect((await operator.retry(at, run)).records_completed).toBe(3);
      expect((await target.pool.query('select from of_some')).rowCount).toBe(3);
    });

    test('fails if that is so of all rows, and leaves the table as it was', async () => {
      await fillWith('none', [1, 2, 3, 4, 5]);
      const at = await once('Postgres', postgresSettings(target.url, 'of_none'), QUERY_OF('none'));
      const run = await ended(at);
      expect([run.status, run.latest_error]).toEqual([
        'Failed',
        expect.stringMatching(/takes none of the 5 rows \(column "doc": /),
      ]);
      expect((await target.pool.query(`select to_regclass('of_none') as found`)).rows).toEqual([
        { found: null },
      ]);
    });

    test('fails at a character that the database has not, and names its place', async () => {
      const url = new URL(target.url);
      const name = `${url.pathname.slice(1)}_latin`;
      await target.pool.query(
        `create database ${name} encoding 'LATIN1' locale_provider libc lc_collate 'C' lc_ctype 'C' template template0`,
      );
      try {
        url.pathname = `/${name}`;
        const query = `select n, if(n = 3, '\u{1F642}', 'a') as face from (select arrayJoin(range(1, 6)) as n) as numbers order by n`;
        const run = await ended(await once('Postgres', postgresSettings(String(url), 'faces'), query));
        expect([run.status, run.latest_error]).toEqual([
          'Failed',
          expect.stringMatching(/, row 3, column "face": a value does not fit its column .*SQLSTATE 22P05/),
        ]);
      } finally {
        await target.pool.query(`drop database ${name} with (force)`);
      }
    });
  });

  test('does not go to a table that is there already', async () => {
    await target.pool.query('create table of_others (event text)');
    const at = await once('Postgres', postgresSettings(target.url, 'of_others'));
    const run = await operator.lastRun(at);
    expect([run.status, run.latest_error]).toEqual(['Failed', expect.stringContaining('is there already')]);
    expect((await target.pool.query('select from of_others')).rowCount).toBe(0);
  });

  test('is verified against the manifest and the run', async () => {
    const at = await once('File', { directory: 'verified', file_format: 'CSV' });
    const run = await operator.lastRun(at);
    expect(await operator.verify(at, {})).toMatchObject({
      ...{ verdict: 'same', problems: [], run_id: run.id, source: { state: 'once', rows: null } },
    });
  });

  test('is shown before it is exported', async () => {
    const shown = await patiently(() =>
      operator.ask('POST', 'preview/', {
        ...{ name: 'Lake', interval: 'once', hogql_query: QUERY },
        destination: { type: 'File', config: { directory: 'shown', file_format: 'CSV' } },
      }),
    );
    expect(shown).toMatchObject({ data_interval_start: null, estimate: { rows: 2, exact: true } });
    expect(shown.rows.map((row: { event: string }) => row.event)).toEqual(['bought', '$pageview']);
    expect(shown.columns[1]).toEqual({ name: 'times', type: 'int64' });
  });
});

describe('an export that has run once', () => {
  const OLD = "now() - interval '1000 days'";
  const listed = async (at: string) =>
    (await operator.ask('GET', '?limit=1000')).results.some(({ id }: { id: string }) => `${id}/` === at);
  const expire = () =>
    expireExportHistory(
      { pool: world.pool, logDays: 30, runDays: 400 },
      { signal: new AbortController().signal, beat: () => undefined },
    );
  const age = (table: string, at: string) =>
    world.pool.query(
      `update ${table} set created_at = ${OLD} where ${table === 'batch_exports' ? 'id' : 'batch_export_id'} = $1`,
      [at.slice(0, -1)],
    );

  test('goes with the last of its runs and backfills, and others stay', async () => {
    const [kept, gone] = [await once('NoOp', {}, 'select 1 as n'), await once('NoOp', {}, 'select 2 as n')];
    const hourly = await operator.create('NoOp', {});
    for (const at of [kept, gone]) await ended(at);
    for (const at of [kept, gone, hourly]) await age('batch_exports', at);
    await age('batch_export_runs', gone);
    await expire();
    // What its backfill tells of it is kept.
    expect([await listed(kept), await listed(gone), await listed(hourly)]).toEqual([true, true, true]);
    await age('batch_export_backfills', gone);
    await expire();
    expect([await listed(kept), await listed(gone), await listed(hourly)]).toEqual([true, false, true]);
  });

  test('counts no more among those of a project, and there are ten times as many of them at most', async () => {
    const of = (done: boolean, atLeast: number) =>
      hasBatchExports(world.pool, operator.tenant.projectId, { done, atLeast });
    const count = async (done: boolean) => {
      let number = 0;
      while (await of(done, number + 1)) number += 1;
      return number;
    };
    const [others, done] = [await count(false), await count(true)];
    const at = await once('NoOp', {}, 'select 1 as n');
    await ended(at);
    expect([await count(false), await count(true)]).toEqual([others, done + 1]);
    await world.pool.query(
      `update batch_export_backfills set status = 'Running' where batch_export_id = $1`,
      [at.slice(0, -1)],
    );
    expect([await count(false), await count(true)]).toEqual([others + 1, done]);
    await world.pool.query(
      `update batch_export_backfills set status = 'Completed' where batch_export_id = $1`,
      [at.slice(0, -1)],
    );
  });
});

describe('what makes no sense is refused', () => {
  const config = { directory: 'refused', file_format: 'CSV' };
  const made = (fields: object, type = 'File', given: object = config) =>
    refused('POST', '', { name: 'Lake', interval: 'once', destination: { type, config: given }, ...fields });

  test.each<[string, object, RegExp]>([
    ['no query', {}, /400.*needs the query.*"attr":"hogql_query"/],
    [
      'a wrong query',
      { hogql_query: 'select evnt from events' },
      /400.*Invalid HogQL query.*line 1, column 8/,
    ],
    ['two columns of one name', { hogql_query: 'select 1 as a, 2 as a' }, /400.*called 'a'/],
    ['filters', { hogql_query: 'select 1', filters: [{ type: 'event', key: 'a' }] }, /400.*"attr":"filters"/],
    ['a zone', { hogql_query: 'select 1', timezone: 'Europe/Berlin' }, /400.*has no effect.*"timezone"/],
    ['a beginning', { hogql_query: 'select 1', start_at: '2026-01-01T00:00:00Z' }, /400.*has no schedule/],
    ['the model of events', { hogql_query: 'select 1', model: 'events' }, /400.*"attr":"model"/],
    [
      'the model with a schedule',
      { interval: 'hour', model: 'hogql', hogql_query: 'select 1' },
      /400.*"model"/,
    ],
  ])('%s', async (_name, fields, expected) => {
    expect(await made(fields)).toMatch(expected);
  });

  test('HTTP', async () => {
    const http = { url: 'https://example.com/batch/', token: 'phc_x' };
    expect(await made({ hogql_query: 'select 1' }, 'HTTP', http)).toMatch(/400.*send rows as they are/);
  });

  test('everything that needs intervals', async () => {
    const at = await once('NoOp', {});
    await operator.lastRun(at);
    const range = { start_at: '2026-01-01T00:00:00Z', end_at: '2026-01-02T00:00:00Z' };
    for (const [method, what, body] of [
      ...[['POST', 'backfills/', range] as const, ['POST', 'run/', {}] as const],
      ...[['GET', 'intervals/', undefined] as const, ['POST', 'pause/', {}] as const],
      ...[['POST', 'unpause/', {}] as const, ['POST', 'verify/', { start_at: range.start_at }] as const],
    ]) {
      expect([what, await refused(method, at + what, body)]).toEqual([
        what,
        expect.stringMatching(/answered 400.*runs once/),
      ]);
    }
    expect(await refused('PATCH', at, { interval: 'hour' })).toMatch(/400.*cannot be changed/);
    expect(await refused('PATCH', at, { hogql_query: 'select 2' })).toMatch(/400.*cannot be changed/);
    expect(await operator.ask('PATCH', at, { name: 'Pond' })).toMatchObject({ name: 'Pond' });
  });
});

describe('a query that takes long', () => {
  const numbers = (name: string) => `(select arrayJoin(range(1000)) as n) as ${name}`;
  const SLOW = `select count() as endless from ${['a', 'b', 'c', 'd'].map(numbers).join(' cross join ')}`;
  const isAtWork = async () => {
    const { rowCount } = await world.pool.query(
      `select from pg_stat_activity
       where datname = current_database() and state = 'active' and query like '%cross join%'
         and pid <> pg_backend_pid()`,
    );
    return rowCount !== 0;
  };

  test('is cancelled, and leaves nothing', async () => {
    const at = await once('File', { directory: 'cancelled', file_format: 'CSV' }, SLOW);
    await eventually(isAtWork);
    const [running] = (await operator.ask('GET', `${at}runs/`)).results;
    await operator.ask('POST', `${at}runs/${running.id}/cancel/`);
    const run = await operator.lastRun(at);
    expect(run.status).toBe('Cancelled');
    await eventually(async () => !(await isAtWork()));
    expect(filesIn(inFolder('cancelled'))).toEqual([]);
  });

  test('is cancelled with its export', async () => {
    const at = await once('File', { directory: 'deleted', file_format: 'CSV' }, SLOW);
    await eventually(isAtWork);
    const [running] = (await operator.ask('GET', `${at}runs/`)).results;
    await operator.ask('DELETE', at);
    await eventually(async () => !(await isAtWork()));
    await eventually(async () => {
      const { rows } = await world.pool.query('select status from batch_export_runs where id = $1', [
        running.id,
      ]);
      return rows[0].status === 'Cancelled';
    });
    expect(filesIn(inFolder('deleted'))).toEqual([]);
  });

  test('ends when it takes too long, and a worker that is killed is followed by another one', async () => {
    await world.worker.stop();
    const startWorker = async () => {
      const worker = programs.start('worker/main.ts', {
        ...world.variables,
        ...{ SLUICE_LOG_LEVEL: 'info', SLUICE_EXPORT_QUERY_SECONDS: '10' },
      });
      await eventually(async () => worker.output().includes('the worker polls'));
      return worker;
    };
    const first = await startWorker();
    const holder = await target.pool.connect();
    await holder.query('begin');
    await holder.query(`select pg_advisory_xact_lock(hashtextextended('sluice export "public"."held"', 0))`);
    const held = await once('Postgres', postgresSettings(target.url, 'held'));
    await eventually(async () => {
      const { rowCount } = await target.pool.query(
        `select from pg_stat_activity where application_name = 'sluice-export' and wait_event_type = 'Lock'`,
      );
      return rowCount === 1;
    });
    first.kill('SIGKILL');
    await first.exited;
    const second = await startWorker();
    await holder.query('rollback');
    holder.release();
    const run = await operator.lastRun(held);
    expect([run.status, run.latest_error, run.records_completed]).toEqual(['Completed', null, 2]);
    const { results } = await operator.ask('GET', `${held}runs/`);
    expect(results).toHaveLength(1);
    const { rows } = await target.pool.query('select event, times from held order by event desc');
    expect(rows).toEqual(ROWS.map(({ event, times }) => ({ event, times })));

    const endless = await once('File', { directory: 'endless', file_format: 'CSV' }, SLOW);
    const failed = await operator.lastRun(endless);
    expect([failed.status, failed.latest_error]).toEqual([
      'Failed',
      expect.stringContaining('longer than SLUICE_EXPORT_QUERY_SECONDS allows'),
    ]);
    expect(filesIn(inFolder('endless'))).toEqual([]);
    second.kill('SIGTERM');
    await second.exited;
  });
});

describe('a worker that is killed', () => {
  const LINES = 20_000;
  const startWorker = async () => {
    const worker = programs.start('worker/main.ts', { ...world.variables, SLUICE_LOG_LEVEL: 'info' });
    await eventually(async () => worker.output().includes('the worker polls'));
    return worker;
  };
  /** Two rows of one kilobyte are not the same. */
  const MANY = `select n, concat(repeat('x', 1000), toString(n)) as text
    from (select arrayJoin(range(${LINES})) as n) as numbers`;
  /** What every run that was followed by another one says in the end. */
  const completed = async (at: string) => {
    const run = await ended(at);
    expect([run.status, run.latest_error, run.records_completed]).toEqual(['Completed', null, LINES]);
    expect((await operator.ask('GET', `${at}runs/`)).results).toHaveLength(1);
  };

  test('in the middle of the COPY into a table is followed by one that writes each row once', async () => {
    const held = Promise.withResolvers<void>();
    let holds = true;
    const server = new URL(target.url);
    const proxy = await startPostgresProxy({
      behind: Number(server.port),
      // Half of the rows are at the server, the others are not.
      watch: (_piece, bytes, name) =>
        name === 'sluice-export' && holds && bytes > (LINES / 2) * 1000 ? held.promise : undefined,
    });
    try {
      server.port = String(proxy.port);
      const first = await startWorker();
      const at = await once('Postgres', postgresSettings(String(server), 'copied'), MANY);
      const copying = () =>
        target.pool.query<{ rows: number }>(
          `select tuples_processed::int as rows from pg_stat_progress_copy
           where datname = current_database() and command = 'COPY FROM' and tuples_processed > 1000`,
        );
      await eventually(async () => (await copying()).rowCount === 1);
      const [{ rows = 0 } = {}] = (await copying()).rows;
      expect(rows).toBeLessThan(LINES);
      first.kill('SIGKILL');
      await first.exited;
      holds = false;
      held.resolve();
      // Nobody sees what the first one wrote.
      expect((await target.pool.query(`select to_regclass('copied') as found`)).rows).toEqual([
        { found: null },
      ]);
      const second = await startWorker();
      await completed(at);
      const { rows: counted } = await target.pool.query(
        `select count(*)::int as rows, count(distinct n)::int as different, count(distinct text)::int as texts,
           min(length(text)) as shortest from copied`,
      );
      expect(counted).toEqual([{ rows: LINES, different: LINES, texts: LINES, shortest: 1001 }]);
      second.kill('SIGTERM');
      await second.exited;
    } finally {
      await proxy.close();
    }
  });

  test('in the middle of a file is followed by one that writes the file anew', async () => {
    // Postgres takes its time for each row, so that the file grows while somebody looks.
    const slow = `select n, text, length(replaceRegexpAll(repeat('ab', 500), '(a)(b)', '\\\\2\\\\1')) as effort from (${MANY}) as many`;
    const first = await startWorker();
    const at = await once('File', { directory: 'broken', file_format: 'JSONLines' }, slow);
    const folder = inFolder('broken');
    const sizes = () =>
      (existsSync(folder) ? readdirSync(folder) : []).map((name) => statSync(path.join(folder, name)).size);
    await eventually(async () => sizes().some((bytes) => bytes > 100_000));
    first.kill('SIGKILL');
    await first.exited;
    const left = readdirSync(folder);
    expect(left).toEqual([expect.stringMatching(/\.partial$/)]);
    expect(sizes()[0]).toBeLessThan(LINES * 1000);
    const second = await startWorker();
    await completed(at);
    const shown = filesIn(folder).filter((name) => !name.endsWith('.partial'));
    expect(shown).toEqual([expect.stringMatching(/\.jsonl$/), expect.stringMatching(/_manifest\.json$/)]);
    const found = lines(readFileSync(path.join(folder, shown[0] as string), 'utf8'));
    expect([found.length, new Set(found.map(({ n }) => n)).size]).toEqual([LINES, LINES]);
    second.kill('SIGTERM');
    await second.exited;
  });
});
