import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Client, ScheduleNotFoundError, WorkflowNotFoundError } from '@temporalio/client';
import { activeRuns } from '../../../exports/rows/run-lists.ts';
import { startRun } from '../../../exports/rows/runs.ts';
import { MOST_VERIFICATIONS } from '../../../schedules/exports/verify.ts';
import { createSchedules } from '../../../schedules/schedules.ts';
import { createLogger } from '../../../telemetry/logger.ts';
import { apiForFile, type Tenant } from '../../support/api.ts';
import { eventually } from '../../support/eventually.ts';
import { reservePort } from '../../support/ports.ts';
import { refusals } from '../../support/refusals.ts';
import { insertEvents } from '../../support/rows.ts';
import { connectTo } from '../../support/temporal.ts';

const api = apiForFile();
const HOUR = 3_600_000;
const iso = (milliseconds: number) => new Date(milliseconds).toISOString();
const utc = (milliseconds: number) => iso(milliseconds).replace('.000Z', 'Z');
const nowhere = { type: 'NoOp', config: {} };
let anna: Tenant;
let exports: string;
let client: Client;
beforeAll(async () => {
  await api.schedules.ensure();
  anna = await api.createTenant('Anna');
  exports = `/api/projects/${anna.projectId}/batch_exports/`;
  const { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace } = api.config;
  client = await connectTo({ address: address as string, namespace });
});
afterAll(async () => client?.connection.close());

async function ask(method: string, url: string, body?: object) {
  const answer = await api.request(anna, method, url, body);
  return { status: answer.statusCode, body: answer.body === '' ? null : answer.json() };
}
async function createExport(fields: object = {}): Promise<string> {
  const { status, body } = await ask('POST', exports, {
    ...{ name: 'Followed', interval: 'hour', destination: nowhere },
    ...fields,
  });
  expect(status).toBe(201);
  return body.id;
}
const scheduleOf = (id: string) => client.schedule.getHandle(id).describe();
type Described = Awaited<ReturnType<typeof scheduleOf>>;

/** Changes an export until its schedule shows it: a busy Temporal may not take a change in time. */
const changed = (id: string, rest: string, fields: object | undefined, isSo: (found: Described) => boolean) =>
  eventually(async () => {
    await ask(fields ? 'PATCH' : 'POST', `${exports}${id}/${rest}`, fields);
    return isSo(await scheduleOf(id));
  });

describe('the schedule of an export', () => {
  test('is there when the export is, and follows its changes', async () => {
    const id = await createExport({ end_at: '2100-01-01T00:00:00Z' });
    const made = await scheduleOf(id);
    expect(made.action).toMatchObject({
      workflowType: 'exportRun',
      workflowId: id,
      args: [{ exportId: id }],
    });
    expect(made.spec.intervals?.map(({ every }) => every)).toEqual([HOUR]);
    expect([made.spec.endAt?.toISOString(), made.state.paused]).toEqual(['2100-01-01T00:00:00.000Z', false]);
    await changed(id, '', { interval: 'every 5 minutes', end_at: null }, ({ spec }) => {
      const every = spec.intervals?.map((one) => one.every);
      return every?.join() === '300000' && spec.endAt === undefined;
    });
    await changed(id, '', { paused: true }, ({ state }) => state.paused);
    await changed(id, 'unpause/', undefined, ({ state }) => !state.paused);
    await changed(id, 'pause/', undefined, ({ state }) => state.paused);
    await ask('DELETE', `${exports}${id}/`);
    await expect(scheduleOf(id)).rejects.toThrow(ScheduleNotFoundError);
  });

  test('is paused from the beginning if the export is', async () => {
    expect((await scheduleOf(await createExport({ paused: true }))).state.paused).toBe(true);
  });

  test('holds no secret', async () => {
    const id = await createExport({
      destination: { type: 'HTTP', config: { url: 'https://x.example/batch/', token: 'phc_canary' } },
    });
    expect(JSON.stringify(await scheduleOf(id))).not.toMatch(/canary|x\.example/);
  });

  test('is what the row says after many changes at once', async () => {
    const id = await createExport();
    await Promise.all(
      ['day', 'hour', 'every 5 minutes', 'every 15 minutes'].map((interval) =>
        ask('PATCH', `${exports}${id}/`, { interval }),
      ),
    );
    const { interval } = (await ask('GET', `${exports}${id}/`)).body;
    const every = { 'every 5 minutes': 300_000, 'every 15 minutes': 900_000, hour: HOUR }[interval as string];
    await eventually(async () => {
      const { spec } = await scheduleOf(id);
      return every === undefined ? spec.intervals?.length === 0 : spec.intervals?.[0]?.every === every;
    });
  });
});

describe('running now', () => {
  const running = async (workflowId: string) => client.workflow.getHandle(workflowId).describe();

  test('is for the last interval that is over, or one that is named', async () => {
    const id = await createExport();
    const before = Math.floor(Date.now() / HOUR) * HOUR;
    // Whichever hour is the last one when the request comes.
    await insertEvents(
      api.pool,
      [before - 1, before + 1].map((at) => ({ project_id: anna.projectId, timestamp: iso(at) })),
    );
    const { status, body } = await ask('POST', `${exports}${id}/run/`);
    expect([status, Date.parse(body.data_interval_end) - Date.parse(body.data_interval_start)]).toEqual([
      201,
      HOUR,
    ]);
    expect([before, before + HOUR]).toContain(Date.parse(body.data_interval_end));
    expect(body.workflow_id).toMatch(new RegExp(`^${id}-run-`));
    expect(body.temporal_url).toBe(
      `https://temporal.test/namespaces/${api.config.TEMPORAL_NAMESPACE}/workflows/${body.workflow_id}/${body.workflow_run_id}`,
    );
    const found = await running(body.workflow_id);
    expect([found.type, found.runId]).toEqual(['exportRun', body.workflow_run_id]);
    const start = utc(before - 5 * HOUR);
    const end = utc(before - 4 * HOUR);
    for (const named of [{ start_at: start }, { end_at: end }, { start_at: start, end_at: end }]) {
      const one = await ask('POST', `${exports}${id}/run/`, named);
      expect([one.status, one.body.data_interval_start, one.body.data_interval_end]).toEqual([
        201,
        start,
        end,
      ]);
    }
    const organization = await ask('POST', `/api/organizations/@current/batch_exports/${id}/run/`);
    expect(organization.status).toBe(201);
    await ask('DELETE', `${exports}${id}/`);
  });

  test('takes the current interval up to now if the last one has nothing, unless that is not wished', async () => {
    const id = await createExport({ filters: [{ type: 'event', key: 'never', operator: 'is_set' }] });
    const { body } = await ask('POST', `${exports}${id}/run/`);
    expect(Date.parse(body.data_interval_start) % HOUR).toBe(0);
    expect(Math.abs(Date.now() - Date.parse(body.data_interval_end))).toBeLessThan(60_000);
    const whole = (await ask('POST', `${exports}${id}/run/`, { partial: false })).body;
    expect(Date.parse(whole.data_interval_end) - Date.parse(whole.data_interval_start)).toBe(HOUR);
  });

  test('partially ends now', async () => {
    const id = await createExport({ interval: 'day', timezone: 'Asia/Tokyo' });
    const { body } = await ask('POST', `${exports}${id}/run/`, { partial: true });
    expect(body.data_interval_start).toMatch(/T15:00:00Z$/);
    expect(Math.abs(Date.now() - Date.parse(body.data_interval_end))).toBeLessThan(60_000);
  });

  const invalid = (attr: string, detail: string) => refusals.field(attr, 'invalid_input', detail);
  test.each<[object, object]>([
    [
      { start_at: '2026-01-01T00:30:00Z' },
      invalid(
        'start_at',
        'No interval of this batch export begins at this time. One begins at 2026-01-01T00:00:00Z.',
      ),
    ],
    [
      { end_at: '2026-01-01T00:30:00Z' },
      invalid(
        'end_at',
        'No interval of this batch export ends at this time. One ends at 2026-01-01T01:00:00Z.',
      ),
    ],
    [
      { start_at: '2026-01-01T00:00:00Z', end_at: '2026-01-01T02:00:00Z' },
      invalid(
        'end_at',
        'No interval of this batch export ends at this time. One ends at 2026-01-01T01:00:00Z.',
      ),
    ],
    [
      { start_at: '2100-01-01T00:00:00Z' },
      invalid('start_at', 'This interval has not ended. It ends at 2100-01-01T01:00:00Z.'),
    ],
    [
      { partial: true, end_at: '2026-01-01T00:00:00Z' },
      invalid(
        'partial',
        "'partial' exports the current interval up to now. Do not combine it with 'start_at' or 'end_at'.",
      ),
    ],
  ])('%j is refused', async (body, refusal) => {
    const id = await createExport();
    expect(await ask('POST', `${exports}${id}/run/`, body)).toEqual({ status: 400, body: refusal });
  });
});

describe('what is under way', () => {
  test('is cancelled in Temporal too, by itself, with its backfill or with its export', async () => {
    const id = await createExport();
    const start = Math.floor(Date.now() / HOUR) * HOUR - 50 * HOUR;
    const begin = async (at: number) => {
      const { body } = await ask('POST', `${exports}${id}/run/`, { start_at: iso(start + at * HOUR) });
      // What the first activity of the run does; no worker is there to do it.
      const { run } = await startRun(api.pool, {
        ...{ projectId: anna.projectId, exportId: id },
        ...{ workflowId: body.workflow_id, workflowRunId: body.workflow_run_id },
        ...{ start: body.data_interval_start, end: body.data_interval_end },
      });
      return run;
    };
    const asked = async (workflowId: string) => {
      const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
      return (events ?? []).some((one) => one.workflowExecutionCancelRequestedEventAttributes);
    };
    const [first, second] = [await begin(0), await begin(1)];
    await ask('POST', `${exports}${id}/runs/${first.id}/cancel/`);
    expect([await asked(first.workflow_id), await asked(second.workflow_id)]).toEqual([true, false]);

    const range = { start_at: iso(start), end_at: iso(start + 5 * HOUR) };
    const { backfill_id: backfill } = (await ask('POST', `${exports}${id}/backfills/`, range)).body;
    const { workflow_id: workflow } = (await ask('GET', `${exports}${id}/backfills/${backfill}/`)).body;
    const found = await client.workflow.getHandle(workflow).describe();
    expect([found.type, found.status.name]).toEqual(['exportBackfill', 'RUNNING']);
    const third = await begin(2);
    await api.pool.query('update batch_export_runs set backfill_id = $1 where id = $2', [backfill, third.id]);
    await ask('POST', `${exports}${id}/backfills/${backfill}/cancel/`);
    expect([await asked(workflow), await asked(third.workflow_id)]).toEqual([true, true]);

    const again = (await ask('POST', `${exports}${id}/backfills/`, { ...range, end_at: iso(start + HOUR) }))
      .body;
    const { workflow_id: other } = (await ask('GET', `${exports}${id}/backfills/${again.backfill_id}/`)).body;
    expect((await ask('DELETE', `${exports}${id}/`)).status).toBe(204);
    expect([await asked(second.workflow_id), await asked(other)]).toEqual([true, true]);
    expect(await activeRuns(api.pool, { projectId: anna.projectId, exportId: id })).toEqual([]);
    const { rows } = await api.pool.query(
      'select distinct status from batch_export_backfills where batch_export_id = $1',
      [id],
    );
    expect(rows).toEqual([{ status: 'Cancelled' }]);
  });
});

describe('unpausing', () => {
  test('exports what was missed, in whole intervals', async () => {
    const id = await createExport();
    await ask('POST', `${exports}${id}/pause/`);
    const paused = Math.floor(Date.now() / HOUR) * HOUR - 2.5 * HOUR;
    await api.pool.query('update batch_exports set last_paused_at = $2 where id = $1', [id, iso(paused)]);
    expect((await ask('POST', `${exports}${id}/unpause/`, { backfill: true })).body).toEqual({
      paused: false,
    });
    const { results } = (await ask('GET', `${exports}${id}/backfills/`)).body;
    expect(results).toHaveLength(1);
    const [{ start_at, end_at, workflow_id }] = results;
    expect([Date.parse(start_at), Date.parse(end_at) % HOUR]).toEqual([paused - 0.5 * HOUR, 0]);
    expect(Date.now() - Date.parse(end_at)).toBeLessThan(HOUR);
    expect((await client.workflow.getHandle(workflow_id).describe()).type).toBe('exportBackfill');
    // It goes on already: nothing was missed since.
    await ask('POST', `${exports}${id}/unpause/`, { backfill: true });
    expect((await ask('GET', `${exports}${id}/backfills/`)).body.results).toHaveLength(1);
  });

  test('exports what was missed since a PATCH paused it, and nothing from before', async () => {
    const id = await createExport();
    const hoursAgo = (hours: number) => iso(Math.floor(Date.now() / HOUR) * HOUR - hours * HOUR);
    await api.pool.query('update batch_exports set created_at = $2 where id = $1', [id, hoursAgo(72)]);
    await ask('PATCH', `${exports}${id}/`, { paused: true });
    await api.pool.query('update batch_export_pauses set paused_at = $2 where batch_export_id = $1', [
      id,
      hoursAgo(2.5),
    ]);
    await ask('POST', `${exports}${id}/unpause/`, { backfill: true });
    const { results } = (await ask('GET', `${exports}${id}/backfills/`)).body;
    expect(results.map((one: { start_at: string }) => iso(Date.parse(one.start_at)))).toEqual([hoursAgo(3)]);
  });

  test('begins with the intervals that failed before the pause', async () => {
    const id = await createExport();
    const now = Math.floor(Date.now() / HOUR) * HOUR;
    const key = { projectId: anna.projectId, exportId: id };
    await api.pool.query('update batch_exports set created_at = $2, scheduled_from = $2 where id = $1', [
      id,
      iso(now - 9 * HOUR),
    ]);
    for (const [hours, status] of [
      [7, 'Failed'],
      [6, 'Completed'],
      [5, 'Failed'],
    ] as const) {
      const { run } = await startRun(api.pool, {
        ...key,
        ...{ start: iso(now - hours * HOUR), end: iso(now - (hours - 1) * HOUR) },
        ...{ workflowId: `${id}-${hours}`, workflowRunId: `${id}-${hours}`, backfillId: null },
      });
      await api.pool.query('update batch_export_runs set status = $2 where id = $1', [run.id, status]);
    }
    await ask('POST', `${exports}${id}/pause/`);
    await api.pool.query('update batch_exports set last_paused_at = $2 where id = $1', [
      id,
      iso(now - 3.5 * HOUR),
    ]);
    await ask('POST', `${exports}${id}/unpause/`, { backfill: true });
    const { results } = (await ask('GET', `${exports}${id}/backfills/`)).body;
    expect(results).toHaveLength(1);
    expect(results[0]).toMatchObject({ start_at: utc(now - 7 * HOUR), end_at: utc(now) });
  });

  test('without a wish for it, or with nothing that was missed, exports nothing', async () => {
    const id = await createExport({ interval: 'week' });
    await ask('POST', `${exports}${id}/pause/`);
    await ask('POST', `${exports}${id}/unpause/`);
    await ask('POST', `${exports}${id}/pause/`);
    // Paused for a moment within an interval.
    await ask('POST', `${exports}${id}/unpause/`, { backfill: true });
    expect((await ask('GET', `${exports}${id}/backfills/`)).body.results).toEqual([]);
  });
});

test('a project has so many verifications under way, and those that are can be asked for again', async () => {
  // There is no worker: none of them ends.
  const id = await createExport();
  const begin = Math.floor(Date.now() / HOUR) * HOUR;
  // A busy Temporal does not answer in time, and is asked again.
  const verify = (hours: number) =>
    eventually(async () => {
      const start = iso(begin - hours * HOUR);
      const answer = await ask('POST', `${exports}${id}/verify/`, { start_at: start, wait_seconds: 1 });
      return answer.status !== 503 && answer;
    });
  for (let hours = 1; hours <= MOST_VERIFICATIONS; hours += 4) {
    const begun = await Promise.all([0, 1, 2, 3].map((more) => verify(hours + more)));
    expect(begun.map((one) => one.status)).toEqual([202, 202, 202, 202]);
  }
  // Those that are counted too late are begun.
  let hours = MOST_VERIFICATIONS;
  const refused = await eventually(async () => {
    hours += 1;
    const answer = await verify(hours);
    return answer.status === 429 && answer;
  });
  expect(refused.body).toMatchObject({
    type: 'throttled_error',
    detail: expect.stringMatching(/^This team already has 2\d verifications of batch exports running\./),
  });
  expect((await verify(1)).status).toBe(202);
});

test('while Temporal is away all that is rows works, and running now says so', async () => {
  const away = createSchedules(
    { ...api.config, TEMPORAL_ADDRESS: `127.0.0.1:${await reservePort()}` },
    createLogger({ name: 'test', level: 'silent' }),
  );
  const app = await api.rebuild({ schedules: away });
  const request = async (method: 'POST' | 'PATCH' | 'DELETE' | 'GET', url: string, payload: object = {}) => {
    const answer = await app.inject({
      ...{ method, url, headers: { authorization: `Bearer ${anna.key}` } },
      ...(method === 'GET' ? {} : { payload }),
    });
    return { status: answer.statusCode, body: answer.body === '' ? null : answer.json() };
  };
  const made = await request('POST', exports, { name: 'x', interval: 'hour', destination: nowhere });
  expect(made.status).toBe(201);
  const url = `${exports}${made.body.id}/`;
  expect((await request('PATCH', url, { name: 'y' })).status).toBe(200);
  expect((await request('POST', `${url}pause/`)).body).toEqual({ paused: true });
  const range = { start_at: '2026-01-01T00:00:00Z', end_at: '2026-01-01T01:00:00Z' };
  expect((await request('POST', `${url}backfills/`, range)).status).toBe(201);
  expect(await request('POST', `${url}run/`)).toEqual({
    status: 503,
    body: {
      ...{ type: 'server_error', code: 'unavailable', attr: null },
      detail: 'Temporal, which runs batch exports, is not available at the moment. Try again.',
    },
  });
  expect((await request('GET', url)).body).toMatchObject({ name: 'y', paused: true });
  expect((await request('DELETE', url)).status).toBe(204);
  await app.close();
  await away.close();
  await expect(client.workflow.getHandle(`${made.body.id}-x`).describe()).rejects.toThrow(
    WorkflowNotFoundError,
  );
});
