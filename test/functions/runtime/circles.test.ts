import { beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import { runtimeForFile } from './world.ts';

// Functions that lead to the event that triggers them. None of these circles may be endless.
const world = runtimeForFile();
let api: string;
beforeAll(async () => {
  api = await world.api.app.listen({ port: 0, host: '127.0.0.1' });
});

const COUNT = '$hog_function_execution_count';
/** The event from outside, and one for each function that may lead to another. */
const ALL = 11;

const only = (event: string) => ({ events: [{ id: event, type: 'events' }] });
const depthsOf = async (event: string) => {
  const { rows } = await world.api.pool.query(
    `select coalesce((properties->>'${COUNT}')::int, 0) as depth from events where event = $1 order by 1`,
    [event],
  );
  return rows.map(({ depth }) => depth);
};
const WHOLE = Array.from({ length: ALL }, (_, depth) => depth);

/** Sends an event to the API as a client does. `more` are further options of the request. */
const sending = (event: string, { path = '/i/v0/e/', properties = '{}', more = '' } = {}) =>
  `fetch('${api}${path}', {'body': {'api_key': '${world.anna.projectToken}', 'event': '${event}', 'distinct_id': 'ada',
    'properties': ${properties}}${more}})`;

describe('a function that sends its event to the API of Sluice', () => {
  test('ends after ten rounds: the last request is refused, and its project is told', async () => {
    const id = await world.create({ hog: sending('sent'), filters: only('sent') });
    await world.capture([{ event: 'sent' }]);
    await world.idle();
    expect(await depthsOf('sent')).toEqual(WHOLE);
    const history = await world.history(id);
    expect(history.map(({ status }) => status).sort()).toEqual([
      'failed',
      ...Array.from({ length: ALL - 1 }, () => 'succeeded'),
    ]);
    const failed = history.find(({ status }) => status === 'failed');
    expect(JSON.stringify(failed?.attempts)).toContain('no circle is endless');
    expect(failed?.attempts).toHaveLength(1);
    const warnings = await eventually(async () => {
      const { rows } = await world.api.pool.query(
        "select * from ingestion_warnings where project_id = $1 and reason = 'function_circle'",
        [world.anna.projectId],
      );
      return rows.length > 0 && rows;
    });
    expect(warnings).toHaveLength(1);
  });

  test.each([
    {
      name: 'header',
      more: ", 'headers': {'SLUICE-function-depth': '0', 'content-type': 'application/json'}",
    },
    { name: 'number', properties: `{'${COUNT}': -1000}` },
    // A body that other threads read.
    { name: 'large', properties: "{'text': event.properties.text}" },
    { name: 'batch', path: '/batch/' },
    { name: 'pixel', path: '/e/?ip=1' },
  ])('whatever it says about itself: $name', async ({ name, ...how }) => {
    const id = await world.create({ hog: sending(name, how), filters: only(name) });
    await world.capture([{ event: name, properties: { text: 'x'.repeat(700_000) } }]);
    await world.idle();
    expect(await depthsOf(name)).toEqual(WHOLE);
    expect(await world.history(id)).toHaveLength(ALL);
  });

  test('two that trigger each other, one by a request and one by a capture', async () => {
    await world.create({ hog: sending('tock'), filters: only('tick') });
    await world.create({
      hog: "postHogCapture({'event': 'tick', 'properties': event.properties})",
      filters: only('tock'),
    });
    await world.capture([{ event: 'tick' }]);
    await world.idle();
    expect(await depthsOf('tick')).toEqual([0, 2, 4, 6, 8, 10]);
    expect(await depthsOf('tock')).toEqual([1, 3, 5, 7, 9]);
  });

  test('a batch counts as the deepest of its events', async () => {
    const id = await world.create({
      hog: `fetch('${world.url('batch')}', {'body': length(items)})`,
      filters: only('together'),
      delivery: { batch: { max_batch: 3, max_wait_seconds: 30 } },
    });
    world.arrivals.length = 0;
    await world.capture([0, 6, 2].map((depth) => ({ event: 'together', properties: { [COUNT]: depth } })));
    await world.idle();
    expect(world.arrivals.map(({ body, headers }) => [body, headers['sluice-function-depth']])).toEqual([
      ['3', '7'],
    ]);
    expect(await world.history(id)).toHaveLength(3);
  });
});

describe('a client', () => {
  const send = (headers: Record<string, string>, body: object) =>
    fetch(`${api}/batch/`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ api_key: world.anna.projectToken, ...body }),
    });

  test('that says a number takes rights from the functions of its events, and gives none', async () => {
    const batch = [{ event: 'forged', distinct_id: 'ada', properties: { [COUNT]: 4 } }];
    for (const depth of ['9', '1', '-50', 'x']) {
      expect((await send({ 'sluice-function-depth': depth }, { batch })).status).toBe(200);
    }
    expect(await depthsOf('forged')).toEqual([4, 4, 4, 9]);
    expect((await send({ 'sluice-function-depth': '11' }, { batch })).status).toBe(400);
    // A number that is none would have let a circle go round as often.
    const id = await world.create({
      hog: "postHogCapture({'event': 'below', 'properties': event.properties})",
      filters: only('below'),
    });
    await world.capture([{ event: 'below', properties: { [COUNT]: -1_000 } }]);
    await world.idle();
    expect(await world.history(id)).toHaveLength(ALL);
  });

  test('that imports the past is not refused: its events trigger nothing', async () => {
    const timestamp = new Date(Date.now() - 100 * 3_600_000).toISOString();
    const batch = [{ event: 'imported', distinct_id: 'ada', timestamp }];
    const answer = await send({ 'sluice-function-depth': '11' }, { batch, historical_migration: true });
    expect(answer.status).toBe(200);
    expect(await depthsOf('imported')).toEqual([0]);
  });
});

test.each([
  { name: 'as it is', options: "{'body': {}}" },
  { name: 'with a number of its own', options: "{'body': {}, 'headers': {'sluice-function-depth': '0'}}" },
])('a source webhook that asks itself ends: $name', async ({ options }) => {
  const id = await world.create({ type: 'source_webhook', hog: 'return 1' });
  const own = `${api}/public/webhooks/${id}`;
  await world.change(id, { hog: `fetch('${own}', ${options})` });
  expect((await fetch(own, { method: 'POST' })).status).toBe(201);
  const totals = await eventually(async () => {
    const found = await world.totals(id);
    return (found.failed ?? 0) >= 2 && found;
  });
  // The request from outside and ten of its own are run. The eleventh is refused, which fails, and so does who sent it.
  expect(totals).toMatchObject({ triggered: ALL + 1, succeeded: ALL - 1, failed: 2, fetch: ALL });
  expect(await world.history(id)).toHaveLength(ALL);
});

describe('a transformation that removes or lowers the number', () => {
  test.each([
    {
      name: 'stripped',
      hog: "return {'event': event.event, 'distinct_id': event.distinct_id, 'properties': {}}",
    },
    { name: 'lowered', hog: `let one := event\none.properties.${COUNT} := 0\nreturn one` },
  ])('opens no circle: $name', async ({ name, hog }) => {
    const tenant = await world.api.createTenant(name);
    await world.create({ type: 'transformation', hog }, tenant);
    const id = await world.create(
      { hog: `postHogCapture({'event': '${name}'})`, filters: only(name) },
      tenant,
    );
    await world.capture([{ event: name }], tenant);
    await world.idle();
    expect(await depthsOf(name)).toEqual(WHOLE);
    expect(await world.history(id)).toHaveLength(ALL);
  });
});
