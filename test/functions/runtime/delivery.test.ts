import { beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import { runtimeForFile, sender } from './world.ts';

const world = runtimeForFile();
beforeEach(() => {
  world.arrivals.length = 0;
  world.answer((_arrival, response) => response.end('{"ok":true}'));
});
/** What has arrived, in the order of its ids: deliveries have none. */
const bodies = () => world.arrivals.map(({ body }) => JSON.parse(body)).sort((a, b) => a.id - b.id);

const paid = (url = world.url(), more: object = {}) =>
  sender(url, { filters: { events: [{ id: 'paid', type: 'events' }] }, ...more });
const pay = (id: number, more: object = {}) => ({ event: 'paid', properties: { id }, ...more });

describe('a function that reacts to events', () => {
  test('each matching event arrives once, with its properties', async () => {
    const id = await world.create(paid());
    await world.capture([pay(1), pay(2), pay(3), { event: 'seen', properties: { id: 4 } }]);
    await world.idle();
    expect(bodies()).toEqual([1, 2, 3].map((number) => ({ name: 'paid', id: number })));
    expect(await world.totals(id)).toMatchObject({ succeeded: 3, triggered: 3, fetch: 3 });
    const history = await world.history(id);
    expect(history.map(({ status }) => status)).toEqual(['succeeded', 'succeeded', 'succeeded']);
    const logs = await world.logs(id);
    expect(logs).toHaveLength(3);
    expect(logs[0]?.message).toMatch(/^Function completed in /);
    await world.change(id, { enabled: false });
  });

  test('it sees neither what was stored before it was enabled, nor what is imported', async () => {
    await world.capture([pay(1)]);
    const id = await world.create(paid());
    const old = new Date(Date.now() - 50 * 3_600_000).toISOString();
    const body = {
      ...{ api_key: world.anna.projectToken, historical_migration: true },
      batch: [{ ...pay(2), distinct_id: 'ada', timestamp: old }],
    };
    expect((await world.api.request(null, 'POST', '/batch/', body)).statusCode).toBe(200);
    await world.capture([pay(3)]);
    await world.idle();
    expect(bodies().map((one) => one.id)).toEqual([3]);
    await world.change(id, { enabled: false });
    await world.capture([pay(4)]);
    await world.idle();
    expect(bodies().map((one) => one.id)).toEqual([3]);
  });

  test('functions that change the event do so for themselves', async () => {
    // The fetch between them ends the first part of each program, so the parts of all of them take turns.
    const hog = (name: string) => `
      let mine := event
      let seen := mine.properties.by
      mine.properties.by := '${name}'
      mine.properties.list.1 := '${name}'
      fetch('${world.url()}', {'body': {'id': 0}})
      fetch('${world.url()}', {'body': {'id': event.properties.id, 'seen': seen, 'list': event.properties.list,
        'mine': mine.properties.by, 'plan': person.properties.plan}})`;
    const names = ['ann', 'bob', 'cyd', 'dan'];
    const ids: string[] = [];
    for (const name of names) ids.push(await world.create({ ...paid(), hog: hog(name) }));
    await world.capture([pay(1, { properties: { id: 1, list: ['x'], $set: { plan: 'gold' } } })]);
    await world.idle();
    const last = bodies().filter(({ id }) => id === 1);
    expect(last.map(({ mine }) => mine).sort()).toEqual(names);
    const { length } = names;
    expect(last.map(({ mine: _, ...rest }) => rest)).toEqual(
      Array.from({ length }, () => ({ id: 1, seen: null, list: ['x'], plan: 'gold' })),
    );
    for (const id of ids) await world.change(id, { enabled: false });
  });

  test('filters see the person and groups of the event, and the program too', async () => {
    const id = await world.create(
      paid(world.url(), {
        filters: {
          events: [{ id: 'paid', type: 'events' }],
          properties: [
            { key: 'plan', value: 'gold', type: 'person', operator: 'exact' },
            { key: 'size', value: 'large', type: 'group', group_type_index: 0, operator: 'exact' },
          ],
        },
        inputs: {
          url: { value: world.url() },
          body: {
            value: {
              id: '{event.properties.id}',
              plan: '{person.properties.plan}',
              size: '{groups.company.properties.size}',
            },
          },
        },
      }),
    );
    const group = { $group_type: 'company', $group_key: 'acme', $group_set: { size: 'large' } };
    await world.capture([{ event: '$groupidentify', properties: group }]);
    await world.capture([
      pay(1, {
        distinct_id: 'gold',
        properties: { id: 1, $set: { plan: 'gold' }, $groups: { company: 'acme' } },
      }),
      pay(2, {
        distinct_id: 'lead',
        properties: { id: 2, $set: { plan: 'lead' }, $groups: { company: 'acme' } },
      }),
      pay(3, { distinct_id: 'gold', properties: { id: 3 } }),
    ]);
    await world.idle();
    expect(bodies()).toEqual([{ id: 1, plan: 'gold', size: 'large' }]);
    expect(await world.totals(id)).toMatchObject({ filtered: 2, succeeded: 1 });
    await world.change(id, { enabled: false });
  });

  test('each mapping that matches runs with its own inputs; a filter that fails does not stop the others', async () => {
    const filters = (key: string) => ({
      events: [{ id: 'paid', type: 'events' }],
      properties: [{ key, type: 'hogql' }],
    });
    const id = await world.create(
      paid(world.url(), {
        filters: {},
        mappings: [
          {
            name: 'one',
            filters: filters('properties.id = 1'),
            inputs: { body: { value: { id: '{event.properties.id}', by: 'one' } } },
            inputs_schema: [{ key: 'body', type: 'json' }],
          },
          {
            name: 'any',
            filters: filters('properties.id > 0'),
            inputs: { body: { value: { id: '{event.properties.id}', by: 'any' } } },
            inputs_schema: [{ key: 'body', type: 'json' }],
          },
          {
            name: 'broken',
            filters: filters('jsonParse(properties.text) = 1'),
            inputs: {},
            inputs_schema: [],
          },
        ],
      }),
    );
    await world.capture([
      pay(1, { properties: { id: 1, text: '{' } }),
      pay(2, { properties: { id: 2, text: '2' } }),
    ]);
    await world.idle();
    expect(bodies()).toEqual(
      expect.arrayContaining([
        { id: 1, by: 'one' },
        { id: 1, by: 'any' },
        { id: 2, by: 'any' },
      ]),
    );
    expect(bodies()).toHaveLength(3);
    expect(await world.totals(id)).toMatchObject({ succeeded: 3, filtering_failed: 1 });
    const errors = (await world.logs(id)).filter(({ level }) => level === 'ERROR');
    expect(errors).toHaveLength(1);
    expect(errors[0]?.message).toMatch(/^Error filtering event [0-9a-f-]{36}: /);
    await world.change(id, { enabled: false });
  });

  test('of the events of one key, masking lets the first of every so many through', async () => {
    const id = await world.create(
      paid(world.url(), { masking: { ttl: 3_600, threshold: 3, hash: '{event.distinct_id}' } }),
    );
    for (let number = 1; number <= 7; number += 1) {
      await world.capture([pay(number), ...(number === 2 ? [pay(20, { distinct_id: 'bob' })] : [])]);
    }
    await world.idle();
    expect(bodies().map((one) => one.id)).toEqual([1, 4, 7, 20]);
    expect(await world.totals(id)).toMatchObject({ succeeded: 4, masked: 4, triggered: 4 });
    await world.change(id, { enabled: false });
  });

  test('an event that a program captures is stored once and can trigger functions, but not without end', async () => {
    const id = await world.create({
      hog: "postHogCapture({'event': 'paid', 'properties': {'id': 1, 'from': event.uuid}})",
      filters: { events: [{ id: 'paid', type: 'events' }] },
    });
    await world.capture([pay(1, { distinct_id: 'circle' })]);
    await world.idle();
    const { rows } = await world.api.pool.query(
      "select count(*)::int as count from events where project_id = $1 and distinct_id = 'circle'",
      [world.anna.projectId],
    );
    // The first one, and those of ten executions.
    expect(rows[0].count).toBe(11);
    expect(await world.totals(id)).toMatchObject({ succeeded: 11 });
    await world.change(id, { enabled: false });
  });
});

describe('an attempt that fails', () => {
  test('is repeated with the same key and body, and printed lines are logged once', async () => {
    let left = 2;
    world.answer((_arrival, response) => {
      response.statusCode = left > 0 ? 500 : 200;
      left -= 1;
      response.end('{"state":"busy"}');
    });
    const id = await world.create(
      paid(world.url(), {
        hog: "print('before'); let res := fetch(inputs.url, {'body': {'random': generateUUIDv4(), 'now': toString(now())}}); print('after', res.status)",
      }),
    );
    await world.capture([pay(1)]);
    await world.idle();
    expect(world.arrivals).toHaveLength(3);
    expect(new Set(world.arrivals.map(({ body }) => body)).size).toBe(1);
    expect(new Set(world.arrivals.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
    expect(world.arrivals[0]?.headers['idempotency-key']).toMatch(/^[0-9a-f-]{36}-0$/);
    const messages = (await world.logs(id)).map(({ message }) => message).reverse();
    expect(messages.slice(0, 4)).toEqual([
      'before',
      expect.stringMatching(/^HTTP fetch failed on attempt 1 with status code 500\. Retrying in 1\d{3}ms\.$/),
      expect.stringMatching(/^HTTP fetch failed on attempt 2 with status code 500\. Retrying in 2\d{3}ms\.$/),
      'after, 200',
    ]);
    const [one] = await world.history(id);
    expect(one).toMatchObject({ status: 'succeeded', error: null });
    expect(
      ((one?.attempts ?? []) as { status: number; attempt: number; response_body: string | null }[]).map(
        ({ status, attempt, response_body: body }) => [status, attempt, body],
      ),
    ).toEqual([
      [500, 1, '{"state":"busy"}'],
      [500, 2, '{"state":"busy"}'],
      [200, 3, null],
    ]);
    expect(await world.totals(id)).toMatchObject({ succeeded: 1, fetch: 1 });
    await world.change(id, { enabled: false });
  });

  test('is final if another attempt cannot help, and the program goes on with the answer', async () => {
    world.answer((_arrival, response) => {
      response.statusCode = 404;
      response.end('{"error":"gone"}');
    });
    const id = await world.create(
      paid(world.url(), {
        hog: "let res := fetch(inputs.url, {'body': {'id': event.properties.id}}); print(res.body.error)",
      }),
    );
    await world.capture([pay(1)]);
    await world.idle();
    expect(world.arrivals).toHaveLength(1);
    const [one] = await world.history(id);
    expect(one).toMatchObject({ status: 'failed' });
    expect(one?.error).toBe(`POST ${world.url()} was answered with 404.`);
    expect((await world.logs(id)).map(({ message }) => message)).toContain('gone');
    expect(await world.totals(id)).toMatchObject({ failed: 1, fetch: 1 });
    await world.change(id, { enabled: false });
  });

  test('is final if the request is not sent, and the host is not left alone because of it', async () => {
    const wrong = {
      length: "'content-length': '3'",
      expect: "'expect': '100-continue'",
      text: "'x-text': 'one\\ntwo'",
    };
    const ids = new Map<string, string>();
    for (const [name, header] of Object.entries(wrong)) {
      const hog = `fetch('${world.url()}', {'headers': {${header}}, 'body': {'id': 1}})`;
      ids.set(name, await world.create({ ...paid(), hog }));
    }
    const refused = await world.create({ ...paid(), hog: "fetch('http://169.254.169.254/', {'body': {}})" });
    const many = 30;
    await world.capture(Array.from({ length: many }, (_, id) => pay(id)));
    await world.capture([pay(many)]);
    const began = Date.now();
    await world.idle();
    // Whoever leaves a host alone does so for 5 seconds at least.
    expect(Date.now() - began).toBeLessThan(4_500);
    for (const id of [...ids.values(), refused]) {
      const history = await world.history(id);
      expect(history.map(({ status }) => status)).toEqual(Array.from({ length: many + 1 }, () => 'failed'));
      expect(history.every(({ attempts }) => (attempts as unknown[]).length === 1)).toBe(true);
    }
    expect(world.arrivals).toEqual([]);
    const id = await world.create(paid());
    await world.capture([pay(99)]);
    await world.idle();
    expect(bodies()).toEqual([{ name: 'paid', id: 99 }]);
    for (const one of [...ids.values(), refused, id]) await world.change(one, { enabled: false });
  });

  test('waits as long as the server says', async () => {
    let left = 1;
    world.answer((_arrival, response) => {
      if (left > 0) response.writeHead(429, { 'Retry-After': '3600' });
      left -= 1;
      response.end('{}');
    });
    const id = await world.create(paid());
    await world.capture([pay(1)]);
    const { pool } = world.api;
    const waits = await eventually(async () => {
      const { rows } = await pool.query(
        `select extract(epoch from due_at - clock_timestamp())::float8 as seconds from function_queue
         where function_id = $1 and lease is null and attempt = 1`,
        [id],
      );
      return rows[0]?.seconds as number | undefined;
    });
    // Some of the hour is over before it is looked at.
    expect(waits).toBeGreaterThan(3_000);
    expect(waits).toBeLessThanOrEqual(3_600);
    await pool.query('update function_queue set due_at = clock_timestamp() where function_id = $1', [id]);
    await world.idle();
    expect(world.arrivals).toHaveLength(2);
    await world.change(id, { enabled: false });
  });

  test.each([
    [
      'a program that throws',
      "let a := 1\n  throw Error('no')",
      /Error executing function on event [-0-9a-f]{36}: line 2, column 3: no$/,
    ],
    ['a program that loops', 'while (true) {}', /Execution timed out after 0.55 seconds/],
    ['a refused address', "fetch('http://169.254.169.254/')", /not allowed/],
  ])('%s fails at once', async (_name, hog, error) => {
    const id = await world.create({ hog, filters: { events: [{ id: 'paid', type: 'events' }] } });
    await world.capture([pay(1)]);
    await world.idle();
    const [one] = await world.history(id);
    expect(one).toMatchObject({ status: 'failed' });
    expect(one?.error).toMatch(error);
    expect(await world.totals(id)).toMatchObject({ failed: 1 });
    await world.change(id, { enabled: false });
  });
});

describe('what waits', () => {
  /** Answers 500 until it is told to stop. */
  const failing = () => {
    let fails = true;
    world.answer((_arrival, response) => {
      response.statusCode = fails ? 500 : 200;
      response.end('{}');
    });
    return () => {
      fails = false;
    };
  };
  const arrived = (count: number) => eventually(async () => world.arrivals.length >= count);

  test('keeps its version, and its secrets are those of now', async () => {
    const recover = failing();
    const id = await world.create({
      hog: "fetch(inputs.url, {'headers': {'x-key': inputs.key}, 'body': {'id': event.properties.id, 'version': 'first'}})",
      inputs_schema: [
        { key: 'url', type: 'string', required: true },
        { key: 'key', type: 'string', secret: true },
      ],
      inputs: { url: { value: world.url() }, key: { value: 'old secret' } },
      filters: { events: [{ id: 'paid', type: 'events' }] },
    });
    await world.capture([pay(1)]);
    await arrived(1);
    await world.change(id, {
      hog: "fetch(inputs.url, {'headers': {'x-key': inputs.key}, 'body': {'id': event.properties.id, 'version': 'second'}})",
      inputs: { url: { value: world.url() }, key: { value: 'new secret' } },
    });
    recover();
    await world.capture([pay(2)]);
    await world.idle();
    const last = new Map(
      world.arrivals.map(({ body, headers }) => [
        JSON.parse(body).id,
        [JSON.parse(body).version, headers['x-key']],
      ]),
    );
    expect(last.get(1)).toEqual(['first', 'new secret']);
    expect(last.get(2)).toEqual(['second', 'new secret']);
    await world.change(id, { enabled: false });
  });

  test('ends as cancelled when its function is switched off, or deleted', async () => {
    failing();
    const [off, gone] = [await world.create(paid()), await world.create(paid())];
    await world.capture([pay(1)]);
    await arrived(2);
    await world.change(off, { enabled: false });
    await world.change(gone, { deleted: true });
    await world.idle();
    expect(await world.history(off)).toMatchObject([
      { status: 'cancelled', error: 'The function was switched off.' },
    ]);
    expect(await world.history(gone)).toMatchObject([
      { status: 'cancelled', error: 'The function was deleted.' },
    ]);
  });

  test('after a program has had an answer, it is not asked for again', async () => {
    let isBusy = true;
    world.answer(({ path }, response) => {
      response.statusCode = path === 'second' && isBusy ? 503 : 200;
      if (path === 'second') isBusy = false;
      response.end(JSON.stringify({ from: path, number: world.arrivals.length }));
    });
    const id = await world.create({
      hog: `let one := fetch('${world.url('first')}', {'body': {}});
        let two := fetch('${world.url('second')}', {'body': {'number': one.body.number}});
        print(one.body.number, two.body.from)`,
      filters: { events: [{ id: 'paid', type: 'events' }] },
    });
    await world.capture([pay(1)]);
    await world.idle();
    expect(
      world.arrivals.map(({ path, body, headers }) => [
        path,
        body,
        String(headers['idempotency-key']).slice(36),
      ]),
    ).toEqual([
      ['first', '{}', '-0'],
      ['second', '{"number":1}', '-1'],
      ['second', '{"number":1}', '-1'],
    ]);
    expect((await world.logs(id)).map(({ message }) => message)).toContain('1, second');
    expect(await world.history(id)).toMatchObject([{ status: 'succeeded' }]);
    await world.change(id, { enabled: false });
  });

  test('a program that sleeps takes no place meanwhile, and goes on', async () => {
    const id = await world.create({
      hog: `fetch('${world.url('first')}', {'body': {}}); sleep(2); fetch('${world.url('second')}', {'body': {}})`,
      filters: { events: [{ id: 'paid', type: 'events' }] },
    });
    await world.capture([pay(1)]);
    await world.idle();
    const [first, second] = world.arrivals;
    expect(world.arrivals.map(({ path }) => path)).toEqual(['first', 'second']);
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(1_900);
    await world.change(id, { enabled: false });
  });

  test('is cancelled when its event is deleted', async () => {
    failing();
    const id = await world.create(paid());
    await world.capture([pay(1)]);
    await arrived(1);
    await world.api.pool.query("delete from events where project_id = $1 and event = 'paid'", [
      world.anna.projectId,
    ]);
    await world.idle();
    expect(await world.history(id)).toMatchObject([{ status: 'cancelled', error: 'The event was deleted.' }]);
    await world.change(id, { enabled: false });
  });
});
