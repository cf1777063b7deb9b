// What a worker has claimed ends, waits for its next attempt, or is given back: whatever happens meanwhile, nothing waits
// until the claim is over. The claims of these workers last longer than the test is ready to wait.
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import type { Outcome } from '../../../functions/delivery/delivery.ts';
import { Leases } from '../../../functions/delivery/leases.ts';
import { ended, postponed } from '../../../functions/delivery/outcomes.ts';
import { Results } from '../../../functions/delivery/results.ts';
import { Load } from '../../../functions/delivery/shares.ts';
import { LARGEST_SEEN } from '../../../functions/rows/events.ts';
import { claim, type QueueRow } from '../../../functions/rows/queue.ts';
import { NO_PROGRESS } from '../../../functions/rules/progress.ts';
import { createLogger } from '../../../telemetry/logger.ts';
import type { Tenant } from '../../support/api.ts';
import { eventually } from '../../support/eventually.ts';
import { sentElements } from '../../support/sent-arrays.ts';
import { runtimeForFile, sender } from './world.ts';

const world = runtimeForFile({ starts: false, settings: { SLUICE_FUNCTION_LEASE_SECONDS: '600' } });
const logger = createLogger({ name: 'test', level: 'silent' });
const LEASE = '00000000-0000-4000-8000-000000000001';
let bob: Tenant;
beforeAll(async () => {
  bob = await world.api.createTenant('Bob');
});
beforeEach(() => {
  world.arrivals.length = 0;
  world.answer((_arrival, response) => response.end('{}'));
});

const on = (event: string, more: object = {}) =>
  sender(world.url(event), { filters: { events: [{ id: event, type: 'events' }] }, ...more });
const together = (event: string, batch: object) =>
  on(event, {
    hog: "fetch(inputs.url, {'body': arrayMap(item -> item.event.properties.id, items)})",
    delivery: { batch },
  });
const events = (event: string, count: number, more: object = {}) =>
  Array.from({ length: count }, (_, id) => ({ event, properties: { id, ...more } }));
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
const arrived = (path: string) => world.arrivals.filter((one) => one.path === path);
const rows = async (sql: string, values: unknown[] = []) => (await world.api.pool.query(sql, values)).rows;
const statuses = async (id: string) => (await world.history(id)).map(({ status }) => status);

/** Queues five invocations of a function. */
const enqueue = (id: string, { projectId }: Tenant, { age = '0 s', progress = null as object | null } = {}) =>
  world.api.pool.query(
    `insert into function_queue (id, project_id, function_id, version, globals, clock, seed, created_at, progress)
     select gen_random_uuid(), $1, $2, 1, '{"event": {"uuid": "", "properties": {}}}', now(), 1, now() - $3::interval, $4
     from generate_series(1, 5)`,
    [projectId, id, age, progress && JSON.stringify(progress)],
  );

/** Makes what waits for another try due, again and again, until something has come about. */
const hasten = (isDone: () => Promise<boolean>) =>
  eventually(async () => {
    await rows(
      'update function_queue set due_at = clock_timestamp() where lease is null and due_at > clock_timestamp()',
    );
    return isDone();
  });

/** Runs a worker until nothing is left to do. */
async function work(): Promise<void> {
  const runtime = world.start();
  await world.idle();
  await world.stop(runtime);
}

/** Which invocations a statement puts back that stores results. */
const postponedIn = ([seqs, , statuses]: unknown[]): number[] => {
  const found = sentElements(statuses as Buffer);
  return sentElements(seqs as Buffer).flatMap((seq, index) =>
    String(found[index]) === 'postponed' ? Number(seq.readBigInt64BE()) : [],
  );
};

type Query = (...args: unknown[]) => unknown;
type Meanwhile = (values: unknown[][]) => Promise<void>;
const query = pg.Client.prototype.query as Query;
const watched = new Map<string, Meanwhile>();
afterEach(() => {
  watched.clear();
  pg.Client.prototype.query = query as typeof pg.Client.prototype.query;
});

/** Lets something happen between the answer to a statement, by its name or its text, and whoever waits for the answer. */
function meanwhile(statement: string, happens: Meanwhile): void {
  watched.set(statement, happens);
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
    const [first] = args as [string | { name?: string; text?: string; values?: unknown[][] }];
    const { name, text, values = [] } = typeof first === 'string' ? { text: first } : (first ?? {});
    const found = [...watched].find(([one]) => one === name || text?.startsWith(one));
    if (!found) return query.apply(this, args);
    const done = args.at(-1);
    if (typeof done !== 'function') {
      return (query.apply(this, args) as Promise<unknown>).then(async (answer) => {
        await found[1](values as unknown[][]);
        return answer;
      });
    }
    const answered = (error: unknown, answer: unknown) => {
      if (error) return done(error);
      found[1](values as unknown[][]).then(
        () => done(null, answer),
        (failure: unknown) => done(failure),
      );
    };
    return query.apply(this, [...args.slice(0, -1), answered]);
  } as typeof pg.Client.prototype.query;
}

/** Happens the first time only. */
const once = (happens: Meanwhile): Meanwhile => {
  let isOver = false;
  return async (values) => {
    if (isOver) return;
    isOver = true;
    await happens(values);
  };
};
const lost: Meanwhile = async () => {
  throw new Error('Connection terminated unexpectedly');
};

describe('a batch', () => {
  test('gives back what is too much for one program, and goes on when its parts could not be given back', async () => {
    const id = await world.create(together('parts', { max_batch: 4, max_wait_seconds: 0 }));
    await world.capture(events('parts', 4, { text: 'x'.repeat(LARGEST_SEEN - 1_000) }));
    meanwhile('update function_queue set batch = null', once(lost));
    await work();
    expect(await statuses(id)).toEqual(Array(4).fill('succeeded'));
    expect(arrived('parts').map(({ body }) => JSON.parse(body).length)).toEqual([1, 1, 1, 1]);
    await world.change(id, { enabled: false });
  });

  test('that somebody gives back is taken before those that gather, and these go when the policy lets them', async () => {
    const id = await world.create(together('gathers', { max_batch: 3, max_wait_seconds: 3_600 }));
    let looks = 0;
    meanwhile('list-functions-due-after', async () => {
      looks += 1;
    });
    await world.capture(events('gathers', 1));
    const runtime = world.start();
    // It is known now when the first one has waited for long enough.
    await eventually(async () => looks > 0);
    const globals = { event: { uuid: '', event: 'gathers', properties: { id: 7 } } };
    await world.api.pool.query(
      `insert into function_queue (id, project_id, function_id, version, globals, clock, seed, batch)
       select gen_random_uuid(), $1, $2, 1, $3, now(), 1, $4 from generate_series(1, 2)`,
      [world.anna.projectId, id, JSON.stringify(globals), LEASE],
    );
    await eventually(async () => (await world.history(id)).length === 2);
    await world.change(id, { delivery: { batch: { max_batch: 3, max_wait_seconds: 0 } } });
    await world.idle();
    await world.stop(runtime);
    expect(arrived('gathers').at(-1)?.body).toBe('[0]');
    await world.change(id, { enabled: false });
  });
});

describe('a claim', () => {
  test('whose answer is lost is given back, and so is one by a policy', async () => {
    const free = await world.create(on('free'));
    const governed = await world.create(on('governed', { delivery: { max_concurrency: 5 } }));
    await enqueue(free, world.anna);
    await world.capture(events('governed', 5));
    const givenBack: unknown[] = [];
    meanwhile('give-invocations-back', async ([, functions = []]) => {
      givenBack.push(...functions);
    });
    meanwhile('claim-invocations', once(lost));
    let isClaimed = false;
    meanwhile('claim-held-invocations', async () => {
      isClaimed = true;
    });
    meanwhile('commit', async () => {
      if (!isClaimed) return;
      watched.delete('claim-held-invocations');
      watched.delete('commit');
      await lost([]);
    });
    await work();
    expect(isClaimed).toBe(true);
    expect(await statuses(free)).toEqual(Array(5).fill('succeeded'));
    expect(await statuses(governed)).toEqual(Array(5).fill('succeeded'));
    expect(givenBack).toEqual(expect.arrayContaining([free, governed]));
    for (const id of [free, governed]) await world.change(id, { enabled: false });
  });

  test('of what is about to be queued is given back if the answer to its transaction is lost', async () => {
    const id = await world.create(on('taken'));
    await world.capture(events('taken', 5));
    const givenBack: unknown[] = [];
    meanwhile('give-invocations-back', async ([, functions = []]) => {
      givenBack.push(...functions);
    });
    let isQueued = false;
    meanwhile('queue-dispatched-invocations', async () => {
      isQueued = true;
    });
    meanwhile('commit', async () => {
      if (!isQueued) return;
      watched.delete('queue-dispatched-invocations');
      watched.delete('commit');
      await lost([]);
    });
    await work();
    expect(givenBack).toContain(id);
    expect(await statuses(id)).toEqual(Array(5).fill('succeeded'));
    await world.change(id, { enabled: false });
  });

  // Invocations are claimed as they are queued, or later.
  const ways = ['queue-dispatched-invocations', 'claim-invocations'] as const;
  const changes = [
    ['disabled', { enabled: false }, 'cancelled'],
    ['deleted', { deleted: true }, 'cancelled'],
    ['paused', { paused: true }, 'succeeded'],
  ] as const;
  test.each(ways.flatMap((way) => changes.map(([name, change, status]) => ({ way, name, change, status }))))(
    'of a function that is $name meanwhile ends ($way)',
    async ({ way, name, change, status }) => {
      const id = await world.create(on(name));
      if (way === 'claim-invocations') await enqueue(id, world.anna);
      else await world.capture(events(name, 5));
      let isChanged = false;
      meanwhile(
        way,
        once(async () => {
          await world.change(id, change);
          isChanged = true;
        }),
      );
      const runtime = world.start();
      await eventually(async () => isChanged);
      if (name === 'paused') {
        const held = 'select from function_queue where function_id = $1 and lease is null';
        await eventually(async () => (await rows(held, [id])).length === 5);
        await world.change(id, { paused: false });
      }
      await world.idle();
      await world.stop(runtime);
      expect(await statuses(id)).toEqual(Array(5).fill(status));
      if (name === 'paused') await world.change(id, { enabled: false });
    },
  );

  test('of a worker that stood still while another one took over sends nothing', async () => {
    const id = await world.create(on('stalled'));
    await enqueue(id, world.anna);
    let isOver = false;
    meanwhile(
      'claim-invocations',
      once(async () => {
        await world.api.pool.query(
          "update function_queue set lease = $2, due_at = clock_timestamp() + interval '1 hour' where function_id = $1",
          [id, LEASE],
        );
        // Longer than its lease.
        await pause(1_200);
        isOver = true;
      }),
    );
    const runtime = world.start({ delivering: { leaseSeconds: 1 } });
    await eventually(async () => isOver);
    await world.stop(runtime);
    expect(arrived('stalled')).toEqual([]);
    expect(await rows('select lease from function_queue where function_id = $1', [id])).toEqual(
      Array(5).fill({ lease: LEASE }),
    );
    await rows('delete from function_queue where function_id = $1', [id]);
    await world.change(id, { enabled: false });
  });

  test('of a worker that stops leaves nothing behind', async () => {
    const ids = [
      await world.create(on('stops')),
      await world.create(on('stops', { delivery: { rate_per_second: 20 } })),
      await world.create(together('stops', { max_batch: 5, max_wait_seconds: 0 })),
    ];
    await world.capture(events('stops', 40));
    const runtime = world.start();
    await eventually(async () => arrived('stops').length > 0);
    await world.stop(runtime);
    expect(await rows('select from function_queue where lease is not null')).toEqual([]);
    await work();
    for (const id of ids) {
      expect(await statuses(id)).toEqual(Array(40).fill('succeeded'));
      await world.change(id, { enabled: false });
    }
  });
});

describe('what cannot be read', () => {
  test('of one function delays no other of its project, and goes on when it can', async () => {
    const broken = await world.create(on('broken'), bob);
    const works = await world.create(on('works'), bob);
    const [{ schema }] = await rows('select inputs_schema as schema from functions where id = $1', [broken]);
    const store = (value: unknown) =>
      rows('update functions set inputs_schema = $2 where id = $1', [broken, JSON.stringify(value)]);
    // Both wait when the worker begins, so they are claimed at once.
    for (const id of [broken, works]) await enqueue(id, bob);
    const claims: unknown[][] = [];
    meanwhile('claim-invocations', async ([, functions = []]) => {
      claims.push(functions);
    });
    const own = new Set(
      (await rows('select seq from function_queue where function_id = $1', [works])).map(({ seq }) => seq),
    );
    const postponed: unknown[] = [];
    meanwhile('store-invocation-results', async (values) => {
      postponed.push(...postponedIn(values));
    });
    await store(null);
    const runtime = world.start();
    await eventually(async () => (await world.history(works)).length === 5 && postponed.length >= 5);
    expect(claims[0]).toEqual(expect.arrayContaining([broken, works]));
    expect(postponed.filter((seq) => own.has(seq))).toEqual([]);
    expect(await statuses(broken)).toEqual([]);
    await store(schema);
    await world.change(broken, { name: 'mended' }, bob);
    await world.idle();
    await world.stop(runtime);
    expect(await statuses(broken)).toEqual(Array(5).fill('succeeded'));
    for (const id of [broken, works]) await world.change(id, { enabled: false }, bob);
  });

  test('of the events of one project delays no other, and goes on when it can', async () => {
    const broken = await world.create(on('read'), bob);
    const works = await world.create(on('read'));
    await world.capture(events('read', 5), bob);
    await world.capture(events('read', 5));
    meanwhile('find-events-at', async ([projects = []]) => {
      if (projects.includes(bob.projectId)) throw new Error('canceling statement due to statement timeout');
    });
    const postponed: unknown[] = [];
    meanwhile('store-invocation-results', async (values) => {
      postponed.push(...postponedIn(values));
    });
    const runtime = world.start();
    await eventually(async () => (await world.history(works)).length === 5 && postponed.length >= 5);
    expect(await statuses(broken)).toEqual([]);
    const own = await rows('select seq from function_queue where function_id = $1', [broken]);
    expect(new Set(postponed)).toEqual(new Set(own.map(({ seq }) => seq)));
    watched.clear();
    await world.idle();
    await world.stop(runtime);
    expect(await statuses(broken)).toEqual(Array(5).fill('succeeded'));
    await world.change(broken, { enabled: false }, bob);
    await world.change(works, { enabled: false });
  });
});

describe('what cannot be read for a day', () => {
  const OVER = 'could not be read within 24 hours, by a fault of Sluice';
  const deadLetters = async (id: string) => {
    const path = `/api/projects/${world.anna.projectId}/hog_functions/${id}/invocations/?open=true`;
    return (await world.api.request(world.anna, 'GET', path)).json().results;
  };

  test('ends what has waited for a day after some tries, and what is newer goes on when it can', async () => {
    const id = await world.create(on('damaged'));
    const [{ schema }] = await rows('select inputs_schema as schema from functions where id = $1', [id]);
    const store = (value: unknown) =>
      rows('update functions set inputs_schema = $2 where id = $1', [id, JSON.stringify(value)]);
    await store(null);
    await enqueue(id, world.anna, { age: '25 h' });
    await enqueue(id, world.anna);
    const postponed: unknown[] = [];
    meanwhile('store-invocation-results', async (values) => {
      postponed.push(...postponedIn(values));
    });
    const runtime = world.start();
    // Somebody may be mending it just now.
    await hasten(async () => postponed.length >= 20);
    expect(await statuses(id)).toEqual([]);
    await hasten(async () => (await statuses(id)).length > 0);
    await hasten(async () => postponed.length >= 60);
    expect(await statuses(id)).toEqual(Array(5).fill('failed'));
    expect(await deadLetters(id)).toEqual(
      Array(5).fill(expect.objectContaining({ error: expect.stringContaining(OVER) })),
    );
    expect(await world.totals(id)).toMatchObject({ failed: 5 });
    await store(schema);
    await world.change(id, { name: 'mended' });
    await hasten(async () => (await statuses(id)).length === 10);
    await world.stop(runtime);
    expect((await statuses(id)).slice(5)).toEqual(Array(5).fill('succeeded'));
    expect(arrived('damaged')).toHaveLength(5);
    await world.change(id, { enabled: false });
  });

  test('of one event delays no other of its project, and ends as failed', async () => {
    const id = await world.create(on('page'));
    await world.capture(events('page', 9));
    const [{ uuid }] = await rows(
      "select uuid from events where project_id = $1 and event = 'page' and (properties->>'id')::int = 3",
      [world.anna.projectId],
    );
    let reads = 0;
    meanwhile('find-events-at', async ([, uuids = []]) => {
      if (!uuids.includes(uuid)) return;
      reads += 1;
      throw Object.assign(new Error('missing chunk number 0 for toast value 1 in pg_toast_1'), {
        code: 'XX001',
      });
    });
    const postponed: unknown[] = [];
    meanwhile('store-invocation-results', async (values) => {
      postponed.push(...postponedIn(values));
    });
    const runtime = world.start();
    await eventually(async () => (await statuses(id)).length === 8 && postponed.length > 0);
    expect(await statuses(id)).toEqual(Array(8).fill('succeeded'));
    const [{ seq }] = await rows('select seq from function_queue where function_id = $1', [id]);
    expect(new Set(postponed)).toEqual(new Set([seq]));
    await rows("update function_queue set created_at = now() - interval '25 h' where function_id = $1", [id]);
    await hasten(async () => (await statuses(id)).length === 9);
    await world.stop(runtime);
    // Among all nine, then among five or four, two or three, and alone: this does not go on for ever.
    expect(reads).toBeLessThan(20);
    expect(await deadLetters(id)).toMatchObject([{ event_id: uuid, error: expect.stringContaining(OVER) }]);
    await world.change(id, { enabled: false });
  });

  test('of what an invocation has had ends it as failed', async () => {
    const id = await world.create(on('progress'));
    await rows("update functions set enabled_at = now() - interval '3 days' where id = $1", [id]);
    await enqueue(id, world.anna, { age: '25 h', progress: {} });
    const runtime = world.start();
    await hasten(async () => (await statuses(id)).length === 5);
    await world.stop(runtime);
    expect(await deadLetters(id)).toEqual(
      Array(5).fill(expect.objectContaining({ error: expect.stringContaining(OVER) })),
    );
    expect(arrived('progress')).toEqual([]);
    await world.change(id, { enabled: false });
  });
});

describe('what cannot be sent to a thread', () => {
  const DEEP = 6_000;

  test('ends as failed and says why, and those that are run with it succeed', async () => {
    const id = await world.create(on('deep'));
    const properties = (index: number) =>
      index === 2 ? `{"id": 2, "deep": ${'['.repeat(DEEP)}${']'.repeat(DEEP)}}` : `{"id": ${index}}`;
    const globals = numbers(5).map(
      (index) => `{"event": {"uuid": "", "event": "deep", "properties": ${properties(index)}}}`,
    );
    await world.api.pool.query(
      `insert into function_queue (id, project_id, function_id, version, distinct_id, globals, clock, seed)
       select gen_random_uuid(), $1, $2, 1, 'ada-' || n, g, now(), 1
       from unnest($3::json[]) with ordinality as one (g, n)`,
      [world.anna.projectId, id, globals],
    );
    await work();
    expect((await statuses(id)).sort()).toEqual(['failed', ...Array(4).fill('succeeded')]);
    expect(
      arrived('deep')
        .map(({ body }) => JSON.parse(body).id)
        .sort(),
    ).toEqual([1, 3, 4, 5]);
    const path = `/api/projects/${world.anna.projectId}/hog_functions/${id}/invocations/?open=true`;
    expect((await world.api.request(world.anna, 'GET', path)).json().results).toMatchObject([
      { distinct_id: 'ada-2', error: expect.stringContaining('works with values that nest too deep') },
    ]);
    await world.change(id, { enabled: false });
  });
});

test('an error of ours is repeated like a request without an answer, after what was sent, and ends as failed', async () => {
  const path = `/api/projects/${world.anna.projectId}/hog_functions/`;
  const guard = await world.api.request(world.anna, 'POST', path, {
    ...{ type: 'transformation', enabled: true, on_error: 'refuse' },
    hog: "if (event.event == 'told') { throw Error('no') } return event",
  });
  expect(guard.statusCode).toBe(201);
  const id = await world.create(
    on('fault', {
      hog: "fetch(inputs.url); postHogCapture({'event': 'told'})",
      delivery: { retry: { max_attempts: 1 } },
    }),
  );
  // It is so old that it has the first three attempts only.
  await rows("update functions set enabled_at = now() - interval '3 days' where id = $1", [id]);
  await rows(
    `insert into function_queue (id, project_id, function_id, version, globals, clock, seed, created_at)
     values (gen_random_uuid(), $1, $2, 1, $3, now(), 1, now() - interval '2 days')`,
    [world.anna.projectId, id, JSON.stringify({ event: { uuid: '', distinct_id: 'ada', properties: {} } })],
  );
  await work();
  expect(await world.history(id)).toMatchObject([
    { status: 'failed', error: expect.stringContaining('by a fault of Sluice') },
  ]);
  expect(arrived('fault')).toHaveLength(1);
  expect(await world.totals(id)).toMatchObject({ failed: 1 });
  const retries = (await world.logs(id)).filter(({ message }) => message.endsWith('Retrying.'));
  expect(retries).toHaveLength(2);
  await world.change(id, { enabled: false });
  await world.change(guard.json().id, { enabled: false });
});

test('an event that an invocation captures is stored once, however often it runs', async () => {
  const hog = "postHogCapture({'event': 'captured once', 'distinct_id': 'ada'})";
  const id = await world.create({ hog, filters: { events: [{ id: 'none', type: 'events' }] } });
  const invocation = '00000000-0000-4000-8000-000000000007';
  for (let times = 1; times <= 2; times += 1) {
    await rows(
      `insert into function_queue (id, project_id, function_id, version, globals, clock, seed)
       values ($1, $2, $3, 1, '{"event": {"uuid": "", "properties": {}}}', now(), 1)`,
      [invocation, world.anna.projectId, id],
    );
    await work();
    expect(await statuses(id)).toEqual(Array(times).fill('succeeded'));
  }
  expect(await rows("select uuid from events where event = 'captured once'")).toHaveLength(1);
  await world.change(id, { enabled: false });
});

describe('results', () => {
  const succeeded: Outcome = { ...ended('failed', ''), status: 'succeeded', error: null };

  async function claimed(id: string): Promise<QueueRow[]> {
    const { pool } = world.api;
    const { projectId } = world.anna;
    await pool.query(
      `insert into function_queue (id, project_id, function_id, version, clock, seed)
       select gen_random_uuid(), $1, $2, 1, now(), 1 from generate_series(1, 5)`,
      [projectId, id],
    );
    const want = { projectId, functionId: id, count: 5, since: '1970-01-01T00:00:00Z' };
    return claim(pool, [want], { lease: LEASE, seconds: 600 });
  }

  test('that cannot be stored end as failed, and those that are written with them are stored', async () => {
    const id = await world.create({ ...on('results'), enabled: false });
    const own = await claimed(id);
    const results = new Results(world.api.pool, logger, new Load(), new Leases(world.api.pool, logger, 600));
    const written = own.map((row, at) =>
      results.add(row, LEASE, at === 2 ? postponed(row, Number.NaN) : succeeded),
    );
    expect(await Promise.all(written)).toEqual(Array(5).fill(true));
    const history = await world.history(id);
    expect(history.filter(({ status }) => status === 'succeeded')).toHaveLength(4);
    expect(history.find(({ id: one }) => one === own[2]?.id)).toMatchObject({
      ...{ status: 'failed', error: 'What the invocation came to could not be stored.' },
    });
  });

  test('of what belongs to somebody else by then leave no trace', async () => {
    const id = await world.create({ ...on('results'), enabled: false });
    const own = await claimed(id);
    const theirs = own.slice(0, 2).map(({ seq }) => seq);
    await rows('update function_queue set lease = gen_random_uuid() where seq = any($1)', [theirs]);
    const results = new Results(world.api.pool, logger, new Load(), new Leases(world.api.pool, logger, 600));
    const outcome: Outcome = {
      ...{ ...succeeded, cost: 100 },
      counts: [
        { projectId: world.anna.projectId, functionId: id, kind: 'success', name: 'succeeded', count: 1 },
      ],
      logs: [{ level: 'info', message: 'done', timestamp: new Date().toISOString() }],
    };
    const written = own.map((row) => results.add(row, LEASE, outcome));
    expect(await Promise.all(written)).toEqual([false, false, true, true, true]);
    expect(await world.totals(id)).toEqual({ succeeded: 3 });
    expect(await world.logs(id)).toHaveLength(3);
    expect(await rows('select tokens from function_states where function_id = $1', [id])).toEqual([
      { tokens: 9_700 },
    ]);
    await rows('delete from function_queue where function_id = $1', [id]);
  });

  test('that are large count until they are written, and are written a few at a time', async () => {
    const id = await world.create({ ...on('results'), enabled: false });
    const own = await claimed(id);
    const load = new Load();
    const results = new Results(world.api.pool, logger, load, new Leases(world.api.pool, logger, 600));
    const sizes: number[] = [];
    meanwhile('store-invocation-results', async (values) => {
      sizes.push(postponedIn(values).length);
    });
    const answers = [{ status: 200, body: 'x'.repeat(7_000_000) }];
    const written = own.map((row) =>
      results.add(row, LEASE, { ...postponed(row, 0), progress: { ...NO_PROGRESS, answers } }),
    );
    expect(load.characters.of(world.anna.projectId)).toBeGreaterThan(35_000_000);
    expect(await Promise.all(written)).toEqual(Array(5).fill(true));
    expect(load.characters.all).toBe(0);
    expect(sizes).toEqual([2, 2, 1]);
    await world.api.pool.query('delete from function_queue where function_id = $1', [id]);
  });
});
