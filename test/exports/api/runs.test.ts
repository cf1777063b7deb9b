import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { findBackfill } from '../../../exports/rows/backfills.ts';
import { insertLogs } from '../../../exports/rows/logs.ts';
import { findRun } from '../../../exports/rows/run-lists.ts';
import { beginAttempt, completeRun, markRunEnded, startRun } from '../../../exports/rows/runs.ts';
import { apiForFile, type Tenant } from '../../support/api.ts';
import { queriesOf } from '../../support/query-log.ts';
import { refusals } from '../../support/refusals.ts';

const api = apiForFile();
const HOUR = 3_600_000;
const iso = (milliseconds: number) => new Date(milliseconds).toISOString();
let anna: Tenant;
let exports: string;
beforeAll(async () => {
  await api.schedules.ensure();
  anna = await api.createTenant('Anna');
  exports = `/api/projects/${anna.projectId}/batch_exports/`;
});

// A project has so many backfills at most.
afterEach(async () => {
  await api.pool.query("update batch_export_backfills set status = 'Completed' where project_id = $1", [
    anna.projectId,
  ]);
});

async function ask(method: string, url: string, body?: object) {
  const answer = await api.request(anna, method, url, body);
  return { status: answer.statusCode, body: answer.json() };
}
async function createExport(fields: object = {}): Promise<string> {
  const { body } = await ask('POST', exports, {
    ...{ name: 'Runs', interval: 'hour', destination: { type: 'NoOp', config: {} } },
    ...fields,
  });
  return body.id;
}
let serial = 0;
/** A run that a worker began. */
async function run(exportId: string, start: number | null, end: number) {
  serial += 1;
  const { run } = await startRun(api.pool, {
    projectId: anna.projectId,
    exportId,
    workflowId: `workflow ${serial}`,
    workflowRunId: `run ${serial}`,
    start: start === null ? null : iso(start),
    end: iso(end),
  });
  return { ...run, key: { projectId: anna.projectId, runId: run.id } };
}
const since = Math.floor(Date.now() / HOUR) * HOUR - 48 * HOUR;

describe('runs', () => {
  test('are shown with where to look at them in Temporal', async () => {
    const id = await createExport();
    const begun = await run(id, since, since + HOUR);
    const attempt = await beginAttempt(api.pool, begun.key);
    await completeRun(api.pool, begun.key, attempt?.fence as number, {
      ...{ records_completed: 5, records_total_count: 6, records_failed: 1, bytes_exported: 700 },
      manifest_key: 'm.json',
    });
    const { status, body } = await ask('GET', `${exports}${id}/runs/${begun.id}/`);
    expect([status, body]).toEqual([
      200,
      {
        ...{
          id: begun.id,
          batch_export: id,
          backfill: null,
          status: 'Completed',
          cursor: null,
          latest_error: null,
        },
        data_interval_start: iso(since).replace('.000', ''),
        data_interval_end: iso(since + HOUR).replace('.000', ''),
        ...{ records_completed: 5, records_total_count: 6, records_failed: 1, bytes_exported: 700 },
        ...{ manifest_key: 'm.json', workflow_id: begun.workflow_id },
        temporal_url: `https://temporal.test/namespaces/${api.config.TEMPORAL_NAMESPACE}/workflows/${encodeURIComponent(begun.workflow_id)}/${encodeURIComponent(begun.workflow_run_id)}`,
        created_at: expect.stringMatching(/Z$/),
        last_updated_at: expect.stringMatching(/Z$/),
        finished_at: expect.stringMatching(/Z$/),
        waiting_since: null,
      },
    ]);
    expect((await ask('GET', `${exports}${id}/`)).body.latest_runs).toEqual([body]);
    const other = await createExport();
    expect((await ask('GET', `${exports}${other}/runs/${begun.id}/`)).status).toBe(404);
    expect((await ask('GET', `${exports}${id}/runs/x/`)).status).toBe(404);
  });

  test('the ten newest stand in the export', async () => {
    const id = await createExport();
    const ids: string[] = [];
    for (let at = 0; at < 12; at += 1) ids.unshift((await run(id, since + at, since + at + 1)).id);
    const { body } = await ask('GET', `${exports}${id}/`);
    expect(body.latest_runs.map((one: { id: string }) => one.id)).toEqual(ids.slice(0, 10));
    const list = (await ask('GET', exports)).body.results.find((one: { id: string }) => one.id === id);
    expect(list.latest_runs).toEqual(body.latest_runs);
  });

  test.each(['-created_at', 'created_at', '-data_interval_start', 'data_interval_start'])(
    'by %s: following links shows each once, forwards and backwards, whatever is begun meanwhile',
    async (ordering) => {
      const id = await createExport();
      const ids: string[] = [];
      for (let at = 0; at < 7; at += 1) {
        ids.push((await run(id, since + at * HOUR, since + (at + 1) * HOUR)).id);
      }
      if (ordering.startsWith('-')) ids.reverse();
      let url: string | null = `${exports}${id}/runs/?ordering=${ordering}&limit=3&personal_api_key=x`;
      const seen: string[] = [];
      const pages: string[][] = [];
      let last = '';
      while (url) {
        const { body }: { body: { next: string | null; results: { id: string }[] } } = await ask(
          'GET',
          url.replace('https://sluice.test', ''),
        );
        last = url;
        pages.push(body.results.map((one) => one.id));
        seen.push(...body.results.map((one) => one.id));
        expect(body.next ?? '').not.toContain('personal_api_key');
        url = body.next;
        if (pages.length === 1) await run(id, since - HOUR, since);
      }
      // A run that is begun later belongs to the front by time of making, and to the edge by interval.
      const added = seen.filter((one) => !ids.includes(one));
      expect(seen.filter((one) => ids.includes(one))).toEqual(ids);
      expect(added.length).toBe(ordering === '-data_interval_start' ? 1 : 0);
      const back: string[][] = [];
      for (let at: string | null = last; at; ) {
        const { body }: { body: { previous: string | null; results: { id: string }[] } } = await ask(
          'GET',
          at.replace('https://sluice.test', ''),
        );
        back.unshift(body.results.map((one) => one.id));
        at = body.previous;
      }
      expect(back.flat().slice(-ids.length - added.length)).toEqual(seen);
    },
  );

  test('are chosen by time, interval and status', async () => {
    const id = await createExport();
    const [old, failed, running] = [
      await run(id, since - 30 * 24 * HOUR, since - 29 * 24 * HOUR),
      await run(id, since, since + HOUR),
      await run(id, since + HOUR, since + 2 * HOUR),
    ];
    await markRunEnded(api.pool, failed.key, 'Failed', 'no such bucket');
    await api.pool.query(
      "update batch_export_runs set created_at = now() - interval '20 days' where id = $1",
      [old.id],
    );
    const ids = async (query: string) =>
      (await ask('GET', `${exports}${id}/runs/${query}`)).body.results.map((one: { id: string }) => one.id);
    expect(await ids('')).toEqual([running.id, failed.id]);
    expect(await ids('?after=-30d')).toEqual([running.id, failed.id, old.id]);
    expect(await ids('?before=-7d&after=-30d')).toEqual([old.id]);
    expect(await ids('?status=Failed')).toEqual([failed.id]);
    expect(await ids('?status=Failed&status=Starting&after=-30d')).toEqual([running.id, failed.id, old.id]);
    expect(await ids('?ordering=data_interval_start')).toEqual([failed.id, running.id]);
    expect(await ids(`?ordering=data_interval_start&start=-90d&end=${iso(since + HOUR)}`)).toEqual([
      old.id,
      failed.id,
    ]);
    expect((await ask('GET', `${exports}${id}/runs/?status=Failed`)).body.results[0].latest_error).toBe(
      'no such bucket',
    );
  });

  test.each([
    ['?ordering=name', 400, refusals.field('ordering', 'invalid_choice', '"name" is not a valid choice.')],
    ['?status=Done', 400, refusals.field('status__0', 'invalid_choice', '"Done" is not a valid choice.')],
    [
      '?after=soon',
      400,
      refusals.field('after', 'invalid_input', 'Must be an ISO 8601 time, or relative as -7d or -1h.'),
    ],
    ...['2026-02-30', '0000-01-01', '2026-01-31T25:00:00Z'].map((after): [string, number, object] => [
      `?after=${after}`,
      400,
      refusals.field('after', 'invalid_input', 'Must be an ISO 8601 time, or relative as -7d or -1h.'),
    ]),
    [
      '?limit=0',
      400,
      refusals.field('limit', 'invalid_input', 'Ensure this value is greater than or equal to 1.'),
    ],
    ['?limit=many', 400, refusals.field('limit', 'invalid_input', 'A valid integer is required.')],
    ['?limit=100000', 200, { next: null, previous: null, results: [] }],
    [
      '?statos=Failed',
      400,
      refusals.field('statos', 'invalid_input', 'There is no field or parameter "statos" here.'),
    ],
    ['?cursor=x', 404, refusals.notFound('Invalid cursor')],
    [`?cursor=${Buffer.from('["x","y",0]').toString('base64url')}`, 404, refusals.notFound('Invalid cursor')],
  ])('asked for with %s', async (query, status, body) => {
    const id = await createExport();
    expect(await ask('GET', `${exports}${id}/runs/${query}`)).toEqual({ status, body });
  });

  test('under way can be cancelled, and then complete nothing any more', async () => {
    const id = await createExport();
    const begun = await run(id, since, since + HOUR);
    const attempt = await beginAttempt(api.pool, begun.key);
    const url = `${exports}${id}/runs/${begun.id}/cancel/`;
    expect(await ask('POST', url)).toEqual({ status: 200, body: { cancelled: true } });
    expect(await completeRun(api.pool, begun.key, attempt?.fence as number, {})).toBeUndefined();
    expect(await findRun(api.pool, begun.key)).toMatchObject({
      status: 'Cancelled',
      finished_at: expect.any(String),
    });
    expect((await ask('GET', `${exports}${id}/runs/${begun.id}/logs/`)).body.results).toMatchObject([
      { level: 'WARNING', message: 'Batch export was cancelled' },
    ]);
    expect(await ask('POST', url)).toEqual({
      status: 400,
      body: refusals.field(null, 'invalid_input', "Cannot cancel a run that is in 'Cancelled' status"),
    });
    for (const status of ['Failed', 'FailedRetryable', 'TimedOut'] as const) {
      const other = await run(id, since, since + HOUR);
      await markRunEnded(api.pool, other.key, status, null);
      expect(await ask('POST', `${exports}${id}/runs/${other.id}/cancel/`)).toEqual({
        status: 400,
        body: refusals.field(null, 'invalid_input', `Cannot cancel a run that is in '${status}' status`),
      });
    }
  });

  test('that are over are retried as a backfill of one interval', async () => {
    const id = await createExport();
    const begun = await run(id, since, since + HOUR);
    const url = `${exports}${id}/runs/${begun.id}/retry/`;
    expect(await ask('POST', url)).toEqual({
      status: 400,
      body: refusals.field(null, 'invalid_input', "Cannot retry a run that is in 'Starting' status"),
    });
    await markRunEnded(api.pool, begun.key, 'Failed', 'x');
    const { status, body } = await ask('POST', url);
    expect([status, body]).toEqual([
      201,
      { backfill_id: `${id}-Backfill-${iso(since)}-${iso(since + HOUR)}` },
    ]);
    const backfill = (await ask('GET', `${exports}${id}/backfills/${encodeURIComponent(body.backfill_id)}/`))
      .body;
    expect(backfill).toMatchObject({
      ...{ workflow_id: body.backfill_id, status: 'Starting', batch_export: id, team: anna.projectId },
      start_at: iso(since).replace('.000', ''),
      end_at: iso(since + HOUR).replace('.000', ''),
      progress: { total_runs: 1, finished_runs: 0, progress: 0 },
    });
    // Once more while it is under way: the same one.
    expect((await ask('POST', url)).body).toEqual(body);
    expect((await ask('GET', `${exports}${id}/backfills/`)).body.results).toEqual([backfill]);
    // Another cut of time has no such interval.
    await ask('POST', `${exports}${id}/backfills/${encodeURIComponent(body.backfill_id)}/cancel/`);
    expect((await ask('PATCH', `${exports}${id}/`, { interval: 'day' })).status).toBe(200);
    expect(await ask('POST', url)).toEqual({
      status: 400,
      body: refusals.field(
        null,
        'invalid_input',
        "The interval of this run is not one of the batch export's intervals. Create a backfill of the whole range instead.",
      ),
    });
    const whole = await run(id, null, since);
    await markRunEnded(api.pool, whole.key, 'Failed', 'x');
    expect(await ask('POST', `${exports}${id}/runs/${whole.id}/retry/`)).toEqual({
      status: 201,
      body: { backfill_id: `${id}-Backfill-START-${iso(since)}` },
    });
  });
});

describe('backfills', () => {
  const hour = (count: number) => iso(since + count * HOUR);

  test('are begun for whole intervals that contain the range', async () => {
    const id = await createExport();
    const url = `${exports}${id}/backfills/`;
    const { status, body } = await ask('POST', url, {
      start_at: iso(since + 1_000),
      end_at: iso(since + 3 * HOUR - 1_000).replace('Z', '+00:00'),
    });
    expect([status, Object.keys(body)]).toEqual([201, ['backfill_id']]);
    const { body: shown } = await ask('GET', `${url}${body.backfill_id}/`);
    expect(shown).toEqual({
      ...{ id: body.backfill_id, team: anna.projectId, batch_export: id, status: 'Starting' },
      workflow_id: `${id}-Backfill-${hour(0)}-${hour(3)}`,
      start_at: hour(0).replace('.000', ''),
      end_at: hour(3).replace('.000', ''),
      ...{ adjusted_start_at: null, total_records_count: null, latest_error: null, finished_at: null },
      progress: { total_runs: 3, finished_runs: 0, progress: 0 },
      created_at: expect.stringMatching(/Z$/),
      last_updated_at: expect.stringMatching(/Z$/),
    });
    // The same again is the same; the older path names the workflow.
    expect((await ask('POST', url, { start_at: hour(0), end_at: hour(3) })).body).toEqual(body);
    expect(await ask('POST', `${exports}${id}/backfill/`, { start_at: hour(0), end_at: hour(3) })).toEqual({
      status: 200,
      body: { backfill_id: shown.workflow_id },
    });
    const other = await createExport();
    expect((await ask('GET', `${exports}${other}/backfills/${body.backfill_id}/`)).status).toBe(404);
    expect((await ask('GET', `${exports}${id}/backfills/x/`)).status).toBe(404);
    expect((await ask('GET', `${exports}${id}/backfills/%00/`)).status).toBe(404);
  });

  test('end where the last interval is over, and without an end there too where that is allowed', async () => {
    const id = await createExport();
    const now = Date.now();
    const last = Math.floor(now / HOUR) * HOUR;
    const open = await ask('POST', `${exports}${id}/backfills/`, {
      start_at: iso(last - 2 * HOUR),
      end_at: null,
    });
    const { end_at } = (await ask('GET', `${exports}${id}/backfills/${open.body.backfill_id}/`)).body;
    expect(Date.parse(end_at)).toBeGreaterThanOrEqual(last);
    expect(Date.parse(end_at) % HOUR).toBe(0);
    const capped = await ask('POST', `${exports}${id}/backfills/`, {
      start_at: iso(last - 3 * HOUR),
      end_at: iso(now),
    });
    const found = (await ask('GET', `${exports}${id}/backfills/${capped.body.backfill_id}/`)).body;
    expect(Date.parse(found.end_at)).toBeLessThanOrEqual(Date.now());
  });

  test('of days and weeks take dates, in the zone of the export', async () => {
    const day = await createExport({ interval: 'day', timezone: 'Europe/Berlin', offset_hour: 4 });
    const { body } = await ask('POST', `${exports}${day}/backfills/`, {
      start_at: '2026-03-28',
      end_at: '2026-03-30',
    });
    expect((await ask('GET', `${exports}${day}/backfills/${body.backfill_id}/`)).body).toMatchObject({
      start_at: '2026-03-28T03:00:00Z',
      end_at: '2026-03-30T02:00:00Z',
      progress: { total_runs: 2 },
    });
  });

  const field = (attr: string, detail: string) => refusals.field(attr, 'invalid_input', detail);
  const [past, later] = ['2026-01-01T00:00:00+00:00', '2026-01-02T00:00:00+00:00'];
  const OPEN = 'Backfilling a BatchExport with no end date is not allowed';
  const BEGINNING = 'Backfilling from the beginning of time is not enabled for this team.';
  test.each([
    ['hour', {}, field('start_at', BEGINNING)],
    ['hour', { start_at: null, end_at: later }, field('start_at', BEGINNING)],
    ['hour', { start_at: past }, field('end_at', OPEN)],
    ['hour', { start_at: past, end_at: null }, field('end_at', OPEN)],
    [
      'hour',
      { start_at: 'x', end_at: later },
      field('start_at', 'Input x is not a valid ISO formatted datetime.'),
    ],
    [
      'hour',
      { start_at: 5, end_at: later },
      field('start_at', 'Input 5 is not a valid ISO formatted datetime.'),
    ],
    [
      'hour',
      { start_at: '2026-01-01T00:00:00', end_at: later },
      field('start_at', 'Input 2026-01-01T00:00:00 is naive.'),
    ],
    ['hour', { start_at: past, end_at: '2026-01-02' }, field('end_at', 'Input 2026-01-02 is naive.')],
    [
      'hour',
      { start_at: later, end_at: past },
      field('start_at', "The initial backfill datetime 'start_at' must be before 'end_at'"),
    ],
    [
      'hour',
      { start_at: past, end_at: '2126-01-01T00:00:00+01:00' },
      field('end_at', "The provided 'end_at' (2126-01-01T00:00:00+01:00) is in the future"),
    ],
    [
      'day',
      { start_at: past, end_at: '2026-01-02' },
      field(
        'start_at',
        `Input '${past}' is not a valid ISO formatted date. Daily or weekly batch export backfills expect only the date component, but a time was included.`,
      ),
    ],
    [
      'day',
      { start_at: '2026-02-30', end_at: '2026-03-02' },
      field('start_at', "Input '2026-02-30' is not a valid ISO formatted date."),
    ],
    [
      'week',
      { start_at: '2026-01-05', end_at: '2026-01-11' },
      field(
        'start_at',
        'Input 2026-01-05 is not on the correct day of the week for this batch export. 2026-01-05 is a Monday but this batch export is configured to run weekly on Sunday.',
      ),
    ],
  ])('of every %s with %j are refused', async (interval, body, refusal) => {
    serial += 1;
    const id = await createExport({
      interval,
      destination: { type: 'File', config: { directory: `refused-${serial}` } },
    });
    for (const path of ['backfills', 'backfill']) {
      expect(await ask('POST', `${exports}${id}/${path}/`, body)).toEqual({ status: 400, body: refusal });
    }
  });

  test('of an interval that is not over are refused', async () => {
    const id = await createExport();
    const start = Math.floor(Date.now() / HOUR) * HOUR;
    const body = { start_at: iso(start), end_at: iso(start + 1) };
    expect(await ask('POST', `${exports}${id}/backfills/`, body)).toEqual({
      status: 400,
      body: field('end_at', 'No interval of this range has ended yet.'),
    });
  });

  test('are listed by cursor, chosen order, each once', async () => {
    const id = await createExport();
    const ids: string[] = [];
    // The later begun ones begin earlier.
    for (let at = 5; at > 0; at -= 1) {
      const { body } = await ask('POST', `${exports}${id}/backfills/`, {
        start_at: hour(at),
        end_at: hour(at + 1),
      });
      ids.push(body.backfill_id);
    }
    for (const [ordering, wanted] of [
      ['created_at', ids],
      ['-created_at', ids.toReversed()],
      ['start_at', ids.toReversed()],
      ['-start_at', ids],
    ] as const) {
      const seen: string[] = [];
      for (let url: string | null = `${exports}${id}/backfills/?ordering=${ordering}&limit=2`; url; ) {
        const { body }: { body: { next: string | null; results: { id: string }[] } } = await ask(
          'GET',
          url.replace('https://sluice.test', ''),
        );
        seen.push(...body.results.map((one) => one.id));
        url = body.next;
      }
      expect([ordering, seen]).toEqual([ordering, wanted]);
    }
  });

  test('are cancelled with their runs, once', async () => {
    const id = await createExport();
    const { body } = await ask('POST', `${exports}${id}/backfills/`, { start_at: hour(0), end_at: hour(2) });
    const begun = await run(id, since, since + HOUR);
    const alone = await run(id, since + HOUR, since + 2 * HOUR);
    await api.pool.query('update batch_export_runs set backfill_id = $1 where id = $2', [
      body.backfill_id,
      begun.id,
    ]);
    const url = `${exports}${id}/backfills/${body.backfill_id}/cancel/`;
    expect(await ask('POST', url)).toEqual({ status: 200, body: { cancelled: true } });
    expect(
      await findBackfill(api.pool, { projectId: anna.projectId, backfillId: body.backfill_id }),
    ).toMatchObject({
      status: 'Cancelled',
    });
    expect((await findRun(api.pool, begun.key))?.status).toBe('Cancelled');
    expect((await findRun(api.pool, alone.key))?.status).toBe('Starting');
    expect(await ask('POST', url)).toEqual({
      status: 400,
      body: refusals.field(null, 'invalid_input', "Cannot cancel a backfill that is in 'Cancelled' status"),
    });
    expect((await ask('GET', `${exports}${id}/backfills/${body.backfill_id}/`)).body.progress).toBeNull();
    const { body: logs } = await ask('GET', `${exports}${id}/logs/`);
    expect(logs.results.map((one: { message: string }) => one.message)).toEqual([
      'Backfill was cancelled',
      'Batch export was cancelled',
    ]);
  });

  test('are limited by project', async () => {
    const ben = await api.createTenant('Ben');
    const url = `/api/projects/${ben.projectId}/batch_exports/`;
    const made = await api.request(ben, 'POST', url, {
      ...{ name: 'Many', interval: 'hour', destination: { type: 'NoOp', config: {} } },
    });
    const post = (at: number) =>
      api.request(ben, 'POST', `${url}${made.json().id}/backfills/`, {
        start_at: hour(at),
        end_at: hour(at + 1),
      });
    for (let at = 0; at < 10; at += 1) expect((await post(at)).statusCode).toBe(201);
    const refused = await post(10);
    expect([refused.statusCode, refused.headers['retry-after'], refused.json()]).toEqual([
      429,
      '60',
      {
        ...{ type: 'throttled_error', code: 'throttled', attr: null },
        detail:
          'This team already has 10 batch export backfills running. Wait for some to finish or cancel them before creating more.',
      },
    ]);
    // One that is there already is no further one.
    expect((await post(3)).statusCode).toBe(201);
  });
});

describe('logs', () => {
  test('are looked for in bounded time', async () => {
    const id = await createExport();
    const { result, queries } = await queriesOf(() => ask('GET', `${exports}${id}/logs/?search=x`));
    expect(result).toMatchObject({ status: 200, body: { results: [] } });
    const at = queries.findIndex((text) => text.includes('from batch_export_logs'));
    expect(queries[at - 1]).toContain('set local statement_timeout');
  });

  test('are read newest first, of an export or of one of its runs', async () => {
    const id = await createExport();
    const begun = await run(id, since, since + HOUR);
    const key = { projectId: anna.projectId, exportId: id };
    await insertLogs(api.pool, key, null, [{ level: 'WARNING', message: 'paused' }]);
    await insertLogs(api.pool, key, begun.id, [
      { level: 'INFO', message: 'starting 100%' },
      { level: 'ERROR', message: 'No such Bucket' },
    ]);
    const read = async (query: string, path = `${exports}${id}/logs/`) => {
      const { body } = await ask('GET', `${path}${query}`);
      return body.results.map((one: { message: string }) => one.message);
    };
    const { body } = await ask('GET', `${exports}${id}/logs/`);
    expect(body).toMatchObject({ count: 3, next: null, previous: null });
    expect(body.results[0]).toEqual({
      ...{ log_source_id: id, instance_id: begun.id, level: 'ERROR', message: 'No such Bucket' },
      timestamp: expect.stringMatching(/Z$/),
    });
    expect(body.results[2]).toMatchObject({ instance_id: null, level: 'WARNING', message: 'paused' });
    const organization = `/api/organizations/@current/batch_exports/${id}/logs/`;
    expect((await ask('GET', organization)).body).toEqual(body);
    const all = ['No such Bucket', 'starting 100%', 'paused'];
    expect(await read('?limit=2')).toEqual(all.slice(0, 2));
    expect(await read('?level=warning&level=ERROR')).toEqual([all[0], all[2]]);
    expect(await read('?search=BUCKET')).toEqual([all[0]]);
    expect(await read('?search=%25')).toEqual([all[1]]);
    expect(await read(`?instance_id=${begun.id}`)).toEqual(all.slice(0, 2));
    expect(await read('', `${exports}${id}/runs/${begun.id}/logs/`)).toEqual(all.slice(0, 2));
    expect(await read('?level=INFO', `${exports}${id}/runs/${begun.id}/logs/`)).toEqual([all[1]]);
    expect(await read(`?after=${body.results[2].timestamp}`)).toEqual(all.slice(0, 2));
    expect(await read(`?before=${body.results[0].timestamp}`)).toEqual(all.slice(1));
    const other = await createExport();
    expect((await ask('GET', `${exports}${other}/runs/${begun.id}/logs/`)).status).toBe(404);
  });

  test.each([
    ['limit=0', refusals.field('limit', 'invalid_input', 'Ensure this value is greater than or equal to 1.')],
    [
      'limit=501',
      refusals.field('limit', 'invalid_input', 'Ensure this value is less than or equal to 500.'),
    ],
    ['limit=x', refusals.field('limit', 'invalid_input', 'A valid integer is required.')],
    ['level=loud', refusals.field('level__0', 'invalid_choice', '"LOUD" is not a valid choice.')],
    ['instance_id=x', refusals.field('instance_id', 'invalid_input', 'Must be a valid UUID.')],
    [
      'after=x',
      refusals.field('after', 'invalid_input', 'Must be an ISO 8601 time, or relative as -7d or -1h.'),
    ],
  ])('asked for with %s are refused', async (query, body) => {
    const id = await createExport();
    expect(await ask('GET', `${exports}${id}/logs/?${query}`)).toEqual({ status: 400, body });
  });
});

describe('metrics', () => {
  test('count how runs ended and what they exported, with zeros between', async () => {
    const id = await createExport();
    for (const [at, records] of [
      [0, 10],
      [1, 5],
    ] as const) {
      const begun = await run(id, since + at * HOUR, since + (at + 1) * HOUR);
      const attempt = await beginAttempt(api.pool, begun.key);
      await completeRun(api.pool, begun.key, attempt?.fence as number, { records_completed: records });
    }
    await markRunEnded(api.pool, (await run(id, since, since + HOUR)).key, 'Failed', 'x');
    await markRunEnded(api.pool, (await run(id, since, since + HOUR)).key, 'Cancelled', null);
    await api.pool.query(
      "update batch_export_metrics set hour = hour - interval '2 days' where batch_export_id = $1 and kind = 'failure'",
      [id],
    );
    const at = (path: string) => ask('GET', `${exports}${id}/metrics/${path}`);
    expect((await at('totals/')).body).toEqual({
      totals: { cancellation: 1, failure: 1, rows: 15, success: 2 },
    });
    expect((await at('totals/?breakdown_by=name')).body).toEqual({
      totals: { canceled: 1, failed: 1, rows_exported: 15, succeeded: 2 },
    });
    expect((await at('totals/?kind=success,failure&after=-1d')).body).toEqual({ totals: { success: 2 } });
    expect((await at('totals/?name=failed')).body).toEqual({ totals: { failure: 1 } });
    const { body } = await at('?after=-3d&breakdown_by=kind');
    expect(body.labels).toHaveLength(4);
    expect(body.labels[3]).toBe(iso(Date.now()).slice(0, 10));
    expect(body.series).toEqual([
      { name: 'cancellation', values: [0, 0, 0, 1] },
      { name: 'failure', values: [0, 1, 0, 0] },
      { name: 'rows', values: [0, 0, 0, 15] },
      { name: 'success', values: [0, 0, 0, 2] },
    ]);
    const hours = (await at('?interval=hour&after=-2h&kind=rows')).body;
    expect(hours.labels).toHaveLength(3);
    expect(hours.labels[0]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:00$/);
    expect(hours.series[0].values.reduce((sum: number, one: number) => sum + one, 0)).toBe(15);
    const weeks = (await at('?interval=week&after=2026-01-01&before=2026-01-12')).body;
    expect(weeks).toEqual({ labels: ['2025-12-29', '2026-01-05', '2026-01-12'], series: [] });
    expect(
      (await ask('GET', `/api/organizations/@current/batch_exports/${id}/metrics/totals/`)).body,
    ).toEqual((await at('totals/')).body);
  });

  test.each([
    ['interval=year', refusals.field('interval', 'invalid_choice', '"year" is not a valid choice.')],
    ['breakdown_by=x', refusals.field('breakdown_by', 'invalid_choice', '"x" is not a valid choice.')],
    [
      'interval=hour&after=1990-01-01',
      refusals.field(
        'interval',
        'invalid_input',
        'This range has more than 10000 values. Choose a longer interval or a shorter range.',
      ),
    ],
  ])('asked for with %s are refused', async (query, body) => {
    const id = await createExport();
    expect(await ask('GET', `${exports}${id}/metrics/?${query}`)).toEqual({ status: 400, body });
  });
});
