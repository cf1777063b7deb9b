import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createBackgroundQueries } from '../../queries/background/runner.ts';
import { claimBackground, expireBackground, releaseClaim } from '../../queries/rows/background.ts';
import { refuse } from '../../refusals.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { capturedEvent } from '../capture/support.ts';
import { apiForFile, tenantsForFile } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { refusals } from '../support/refusals.ts';

const api = apiForFile();
const { anna, otto } = tenantsForFile(api, 'anna', 'otto');
const logger = createLogger({ name: 'test', level: 'silent' });
const NOTHING = { kind: 'HogQLQuery', query: 'select 1' };
const path = (id = '', of = anna) => `/api/projects/${of.projectId}/query/${id}`;
const post = (body: object, of = anna) => api.request(of, 'POST', path('', of), body);
const show = (id: string, of = anna) => api.request(of, 'GET', path(`${id}/`, of));
const drop = (id: string, of = anna) => api.request(of, 'DELETE', path(`${id}/`, of));
const states = async () =>
  (await api.pool.query('select id, state, attempts from background_queries order by created_at, id')).rows;
/** Writes a query that nobody looks for. */
const write = (id: string, of = anna, seconds = 0) =>
  api.pool.query(
    `insert into background_queries (project_id, id, request, created_at, expires_at)
     values ($1, $2, $3, now() + $4 * interval '1 second', now() + interval '1 hour')`,
    [of.projectId, id, JSON.stringify({ query: NOTHING, explain: false }), seconds],
  );
const claim = () => claimBackground(api.pool, crypto.randomUUID());
/** What the process that had claimed them would have renewed. */
const loseClaims = () =>
  api.pool.query("update background_queries set claimed_until = now() - interval '1 second'");

/** The end of a query. */
const ended = (id: string, of = anna) =>
  eventually(async () => {
    const answer = await show(id, of);
    return answer.statusCode !== 202 && answer;
  });

beforeAll(async () => {
  for (const [tenant, event] of [
    [anna, 'hers'],
    [otto, 'his'],
  ] as const) {
    await api.ingest.submit({
      projectId: tenant.projectId,
      events: Array.from({ length: 3 }, (_, index) =>
        capturedEvent({ index, event, distinct_id: `d-${index}`, timestamp: Date.UTC(2026, 2, 10) }),
      ),
    });
  }
});
beforeEach(async () => {
  await api.pool.query('truncate background_queries cascade');
});

describe('a query in the background', () => {
  test('is answered as it is at once, and can be asked for by its id', async () => {
    const query = { kind: 'HogQLQuery', query: 'select event, distinct_id from events order by distinct_id' };
    const begun = await post({ query, async: true });
    expect(begun.statusCode).toBe(202);
    const { query_status: status } = begun.json();
    expect(status).toEqual({
      ...{ id: expect.stringMatching(/^[\da-f-]{36}$/), team_id: anna.projectId, query_async: true },
      ...{ complete: false, error: false, error_message: null, results: null },
      ...{
        start_time: expect.any(String),
        pickup_time: null,
        end_time: null,
        expiration_time: expect.any(String),
      },
    });
    const found = await ended(status.id);
    expect([found.statusCode, found.headers['content-type']]).toEqual([
      200,
      'application/json; charset=utf-8',
    ]);
    const { results, ...rest } = found.json().query_status;
    expect(rest).toMatchObject({ id: status.id, complete: true, error: false, error_message: null });
    expect(Date.parse(rest.expiration_time) - Date.parse(rest.end_time)).toBe(3_600_000);
    const { timings: _, ...atOnce } = (await post({ query })).json();
    const { timings, ...later } = results;
    expect(later).toEqual(atOnce);
    expect(later.results).toHaveLength(3);
    expect(timings.map((one: { k: string }) => one.k)).toEqual(['compile', 'wait', 'run']);
  });

  test('has all kinds, and is explained', async () => {
    for (const [index, query] of [
      { kind: 'EventsQuery', select: ['event', 'person'], after: 'all', before: '2026-04-01' },
      { kind: 'ActorsQuery' },
    ].entries()) {
      const id = `kind-${index}`;
      await post({ query, async: true, explain: true, client_query_id: id });
      const { results } = (await ended(id)).json().query_status;
      const { timings: _, ...atOnce } = (await post({ query, explain: true })).json();
      expect(results).toMatchObject(atOnce);
    }
  });

  test.each(['force_async', 'async', 'lazy_async'])('is asked for by refresh %s, too', async (refresh) => {
    expect((await post({ query: NOTHING, refresh })).statusCode).toBe(202);
    expect((await post({ query: NOTHING, refresh: 'blocking' })).statusCode).toBe(200);
  });

  test('has the id that the client gives it, and whoever asks again joins it', async () => {
    const id = 'a:b.c@d_e-1';
    await write(id);
    const joined = await post({ query: NOTHING, async: true, client_query_id: id });
    expect([joined.statusCode, joined.json().query_status.id]).toEqual([202, id]);
    expect(await states()).toHaveLength(1);
    await ended(id);
    await write('taken');
    expect((await claim())?.id).toBe('taken');
    const other = await post({
      query: { ...NOTHING, query: 'select 2' },
      async: true,
      client_query_id: 'taken',
    });
    expect([other.statusCode, other.json()]).toEqual([
      400,
      refusals.field(
        'client_query_id',
        'invalid_input',
        'Another query with this id has not ended. Choose another id, or cancel that query.',
      ),
    ]);
    await loseClaims();
    api.background.wake();
    await ended('taken');
    // One that has ended makes room.
    await post({ query: { ...NOTHING, query: 'select 3' }, async: true, client_query_id: 'taken' });
    expect((await ended('taken')).json().query_status.results.results).toEqual([[3]]);
    for (const wrong of ['', 'a/b', 'x'.repeat(201), 'ü', 'a b', 'a\u0000']) {
      const refused = await post({ query: NOTHING, async: true, client_query_id: wrong });
      expect([refused.statusCode, refused.json().attr]).toEqual([400, 'client_query_id']);
    }
  });

  test('that is wrong says where, as it does at once', async () => {
    const query = { kind: 'HogQLQuery', query: 'select evnt from events' };
    await post({ query, async: true, client_query_id: 'wrong' });
    const failed = await ended('wrong');
    const atOnce = await post({ query });
    expect([failed.statusCode, atOnce.statusCode]).toEqual([400, 400]);
    const { query_status: status, ...error } = failed.json();
    expect(error).toEqual(atOnce.json());
    expect(error).toMatchObject({ attr: 'query', reason: expect.stringContaining('^') });
    expect(status).toMatchObject({ complete: true, error: true, error_message: error.detail, results: null });
  });

  test('of many megabytes comes whole, and is cut into parts', async () => {
    await api.ingest.submit({
      projectId: otto.projectId,
      events: Array.from({ length: 300 }, (_, index) =>
        capturedEvent({ index, event: 'large', properties: { text: randomBytes(10_000).toString('hex') } }),
      ),
    });
    const query = {
      kind: 'HogQLQuery',
      query: "select uuid, properties.text from events where event = 'large' order by uuid limit 1000",
    };
    const known = await post({ query }, otto);
    expect(known.json().results).toHaveLength(300);
    await post({ query, async: true, client_query_id: 'large' }, otto);
    const { results } = (await ended('large', otto)).json().query_status;
    expect(results.results).toEqual(known.json().results);
    const { rows } = await api.pool.query('select number from background_query_parts order by number');
    expect(rows.length).toBeGreaterThan(2);
  });
});

describe('the queries in the background', () => {
  test('of another project are nobody’s', async () => {
    await post({ query: NOTHING, async: true, client_query_id: 'mine' });
    await ended('mine');
    const missing = refusals.notFound('There is no query with this id, or its result has expired.');
    for (const answer of [
      await show('mine', otto),
      await drop('mine', otto),
      await show('none'),
      await drop('none'),
    ]) {
      expect([answer.statusCode, answer.json()]).toEqual([404, missing]);
    }
    // The same id is free there.
    await post(
      {
        query: { ...NOTHING, query: "select count() from events where event = 'his'" },
        async: true,
        client_query_id: 'mine',
      },
      otto,
    );
    expect((await ended('mine', otto)).json().query_status.results.results).toEqual([[3]]);
    expect((await ended('mine')).json().query_status.results.results).toEqual([[1]]);
    // Nor does one project see the events of the other.
    await post({
      query: { ...NOTHING, query: 'select distinct event from events' },
      async: true,
      client_query_id: 'e',
    });
    expect((await ended('e')).json().query_status.results.results).toEqual([['hers']]);
  });

  test('are twenty of a project at most, of which one runs', async () => {
    for (let n = 0; n < 20; n += 1) await write(`q-${n}`, anna, n - 100);
    const refused = await post({ query: NOTHING, async: true });
    expect([refused.statusCode, refused.headers['retry-after']]).toEqual([429, '10']);
    expect((await post({ query: NOTHING, async: true, client_query_id: 'his' }, otto)).statusCode).toBe(202);
    await ended('his', otto);
    await eventually(async () => (await states()).every(({ state }) => state === 'completed'));
    // As many others have ended as there were.
    await post({ query: NOTHING, async: true, client_query_id: 'free' });
    await ended('free');
  });

  test('have their turn by project, and in a project one after another', async () => {
    await write('first', anna, -30);
    await write('second', anna, -20);
    await write('his', otto, -10);
    const one = await claim();
    const two = await claim();
    expect([one?.id, two?.id, await claim()]).toEqual(['first', 'his', undefined]);
    if (!one || !two) throw new Error('nothing was claimed');
    await releaseClaim(api.pool, one, { afterMs: 0, isCounted: false });
    expect((await claim())?.id).toBe('first');
  });

  test('of a project that has asked for many before let those of others come first', async () => {
    for (let n = 0; n < 5; n += 1) await write(`hers-${n}`, anna, n - 100);
    await write('his', otto, -10);
    const answered: string[] = [];
    const queries = createBackgroundQueries({
      ...{ pool: api.pool, logger, atOnce: 1 },
      answer: async (project) => {
        answered.push(project === anna.projectId ? 'hers' : 'his');
        return Readable.from(['{}']);
      },
    });
    queries.wake();
    await eventually(async () => answered.length === 6);
    await queries.close();
    expect(answered.slice(0, 3)).toEqual(['hers', 'his', 'hers']);
  });

  test('whose process has died are answered by another one, but not again and again', async () => {
    await write('orphan');
    expect((await claim())?.attempts).toBe(1);
    expect(await claim()).toBeUndefined();
    await loseClaims();
    api.background.wake();
    expect((await ended('orphan')).json().query_status.results.results).toEqual([[1]]);
    await write('poison');
    for (const attempts of [1, 2]) {
      expect((await claim())?.attempts).toBe(attempts);
      await loseClaims();
    }
    api.background.wake();
    const failed = await ended('poison');
    expect([failed.statusCode, failed.json().detail]).toEqual([400, expect.stringContaining('begun twice')]);
  });

  test('of a process that stops are done by others at once, and the stop does not wait for them', async () => {
    const begun = Promise.withResolvers<AbortSignal>();
    const queries = createBackgroundQueries({
      ...{ pool: api.pool, logger, atOnce: 1 },
      answer: async (_project, _request, signal) => {
        begun.resolve(signal);
        await pause(3_600_000, undefined, { signal });
        throw new Error('nobody comes here');
      },
    });
    await write('long');
    queries.wake();
    await begun.promise;
    await queries.close();
    expect(await states()).toEqual([{ id: 'long', state: 'waiting', attempts: 0 }]);
    api.background.wake();
    expect((await ended('long')).statusCode).toBe(200);
  });

  test('that are cancelled stop at once, and elsewhere soon', async () => {
    const signals: AbortSignal[] = [];
    const queries = createBackgroundQueries({
      ...{ pool: api.pool, logger, atOnce: 2 },
      answer: async (_project, _request, signal) => {
        signals.push(signal);
        await pause(3_600_000, undefined, { signal });
        throw new Error('nobody comes here');
      },
    });
    try {
      await write('here');
      await write('there', otto);
      queries.wake();
      await eventually(async () => signals.length === 2);
      queries.cancel(anna.projectId, 'here');
      expect(signals.filter((one) => one.aborted)).toHaveLength(1);
      // Another process deletes it.
      const cancelled = await drop('there', otto);
      expect([cancelled.statusCode, cancelled.json()]).toEqual([
        200,
        { message: 'The query is cancelled, and its results are deleted.' },
      ]);
      await eventually(async () => signals.every((one) => one.aborted));
      expect((await show('there', otto)).statusCode).toBe(404);
    } finally {
      await queries.close();
    }
  });

  test('are tried again later where others take all there is', async () => {
    let asked = 0;
    const queries = createBackgroundQueries({
      ...{ pool: api.pool, logger, atOnce: 1 },
      answer: async () => {
        asked += 1;
        throw refuse.crowded('Not now.', 1);
      },
    });
    await write('later');
    queries.wake();
    await eventually(async () => asked === 1 && (await states())[0]?.state === 'waiting');
    await queries.close();
    expect(await states()).toEqual([{ id: 'later', state: 'waiting', attempts: 0 }]);
    expect(await claim()).toBeUndefined();
    await api.pool.query('update background_queries set due_at = now()');
    expect((await claim())?.id).toBe('later');
  });

  test('say nothing of errors of the server itself', async () => {
    const queries = createBackgroundQueries({
      ...{ pool: api.pool, logger, atOnce: 1 },
      answer: async () => {
        throw new Error('relation "secret" does not exist');
      },
    });
    await write('ours');
    queries.wake();
    const failed = await ended('ours');
    await queries.close();
    expect(failed.statusCode).toBe(400);
    expect(failed.body).not.toContain('secret');
  });

  test('are forgotten after an hour, and the oldest results of a project when there are many', async () => {
    await post({ query: NOTHING, async: true, client_query_id: 'old' });
    await ended('old');
    await api.pool.query("update background_queries set expires_at = now() - interval '1 second'");
    expect((await show('old')).statusCode).toBe(404);
    expect((await drop('old')).statusCode).toBe(404);
    await post({ query: NOTHING, async: true, client_query_id: 'older' });
    await ended('older');
    await api.pool.query("update background_queries set expires_at = now() - interval '1 second'");
    expect(await expireBackground(api.pool, 10)).toBe(1);
    const { rows } = await api.pool.query('select count(*) as left from background_query_parts');
    expect(rows).toEqual([{ left: 0 }]);
    await api.pool.query(
      `insert into background_queries (project_id, id, state, finished_at, expires_at, bytes)
       select $1, 'n-' || n, 'completed', now() - n * interval '1 second', now() + interval '1 hour', 1024 * 1024
       from generate_series(1, 99) n`,
      [anna.projectId],
    );
    await post({ query: NOTHING, async: true, client_query_id: 'new' });
    await ended('new');
    // At most 64 MiB: the new one, which is small, and 63 others.
    await eventually(async () => (await states()).length === 64);
    expect((await states()).map(({ id }) => id)).toEqual(expect.arrayContaining(['new', 'n-1', 'n-63']));
  });

  test('are asked for by a key that may read queries', async () => {
    const { value } = await api.createKey(anna, { scopes: ['event_definition:read'] });
    for (const [method, url] of [
      ['GET', path('x/')],
      ['DELETE', path('x/')],
    ] as const) {
      const answer = await api.request(value, method, url);
      expect([answer.statusCode, answer.json().detail]).toEqual([
        403,
        "API key missing required scope 'query:read'",
      ]);
    }
  });
});
