import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Tenant } from '../../support/api.ts';
import { transformingApi } from './support.ts';

const api = transformingApi();
let anna: Tenant;
beforeEach(async () => {
  anna = await api.createTenant('Anna');
});

const setting = (name: string, value: string) => ({
  hog: `let changed := event\nchanged.properties.${name} := ${value}\nreturn changed`,
});
const DROP = { hog: 'return null' };

describe('transformations', () => {
  test('run one after the other in their order, and each sees what those before have changed', async () => {
    const second = await api.transform(anna, {
      ...{ execution_order: 2, name: 'Second' },
      ...setting('after', 'concat(event.properties.first, event.event, event.distinct_id)'),
      filters: { properties: [{ key: 'first', value: ['x'], operator: 'exact', type: 'event' }] },
    });
    const first = await api.transform(anna, {
      ...{ execution_order: 1, name: 'First' },
      hog: `let changed := event
        changed.event := upper(event.event)
        changed.distinct_id := concat('id-', event.distinct_id)
        changed.properties.first := event.properties.kind
        changed.properties.gone := null
        return changed`,
    });
    const [seen, other] = await api.stored(anna, [
      { event: 'a', properties: { kind: 'x', gone: 1, kept: { deep: [1] } } },
      { event: 'b', properties: { kind: 'y' } },
    ]);
    expect(seen).toMatchObject({
      ...{ event: 'A', distinct_id: 'id-ada' },
      properties: { kind: 'x', first: 'x', after: 'xAid-ada', gone: null, kept: { deep: [1] } },
      transformations: [
        { id: first, version: 1, properties: ['gone', 'first'], fields: ['event', 'distinct_id'] },
        { id: second, version: 1, properties: ['after'] },
      ],
    });
    expect(other).toMatchObject({ event: 'B', properties: { first: 'y' } });
    expect(other?.properties).not.toHaveProperty('after');
    expect(await api.counts(second)).toEqual({ 'success succeeded': 1, 'other filtered': 1 });
    expect(await api.counts(first)).toEqual({ 'success succeeded': 2 });
    // Persons are those of the changed events.
    const { rows } = await api.pool.query(
      'select distinct_id from person_distinct_ids where project_id = $1',
      [anna.projectId],
    );
    expect(rows).toEqual([{ distinct_id: 'id-ada' }]);
  });

  test('drop what they return nothing for, and what comes after them does not run', async () => {
    const dropping = await api.transform(anna, {
      ...{ hog: "return event.event = 'bad' ? null : event", execution_order: 1 },
    });
    const later = await api.transform(anna, { ...setting('later', 'true'), execution_order: 2 });
    const found = await api.stored(anna, [{ event: 'bad' }, { event: 'good' }]);
    expect(found.map((one) => [one.event, one.transformations?.map(({ id }) => id)])).toEqual([
      ['good', [later]],
    ]);
    expect(await api.counts(dropping)).toEqual({ 'success succeeded': 2, 'other dropped': 1 });
    expect(await api.counts(later)).toEqual({ 'success succeeded': 1 });
  });

  test('leave events as they are that they do not change', async () => {
    await api.transform(anna, { hog: 'return event' });
    const [found] = await api.stored(anna, [{ properties: { a: 1.5, b: [null, { c: 'x' }], d: '\u0000' } }]);
    expect(found?.transformations).toBeNull();
    expect(found?.properties).toEqual(expect.objectContaining({ a: 1.5, b: [null, { c: 'x' }] }));
  });

  test('take effect as soon as it is known that they were enabled, changed, moved, disabled or deleted', async () => {
    const marks = async () => (await api.stored(anna, [{}]))[0]?.properties.mark;
    expect(await marks()).toBeUndefined();
    const one = await api.transform(anna, setting('mark', '1'));
    expect(await marks()).toBe(1);
    await api.change(anna, one, setting('mark', '2'));
    expect(await marks()).toBe(2);
    const two = await api.transform(anna, setting('mark', '3'));
    expect(await marks()).toBe(3);
    await api.change(anna, 'rearrange', { orders: { [one]: 9 } });
    expect(await marks()).toBe(2);
    await api.change(anna, one, { enabled: false });
    expect(await marks()).toBe(3);
    await api.change(anna, two, { deleted: true });
    expect(await marks()).toBeUndefined();
  });

  test('see events of historical imports, too', async () => {
    await api.transform(anna, setting('mark', 'true'));
    const [found] = await api.stored(anna, [{ timestamp: '2020-01-01T00:00:00Z' }], {
      historical_migration: true,
    });
    expect(found?.properties.mark).toBe(true);
  });

  test('are those of the project of the event only', async () => {
    const ben = await api.createTenant('Ben');
    await api.transform(anna, DROP);
    expect(await api.stored(anna, [{}])).toEqual([]);
    expect(await api.stored(ben, [{}])).toHaveLength(1);
  });

  test('see time, address of the page, project and inputs, but no person', async () => {
    const id = await api.transform(anna, {
      hog: `let changed := event
        changed.properties.seen := [event.timestamp, event.url, project.id, inputs.greeting, inputs.secret]
        changed.properties.person := person
        return changed`,
      inputs_schema: [
        { key: 'greeting', type: 'string', label: 'Greeting' },
        { key: 'secret', type: 'string', label: 'Secret', secret: true },
      ],
      inputs: { greeting: { value: 'hello {event.event}' }, secret: { value: 'pepper' } },
      on_error: 'pass',
    });
    const sent = { timestamp: '2026-01-02T03:04:05.678Z', properties: { $current_url: 'https://a.test/' } };
    expect((await api.stored(anna, [sent]))[0]?.properties).not.toHaveProperty('seen');
    expect(await api.logs(id)).toEqual([
      expect.stringMatching(
        /^error Error executing function on event .*line \d+, column \d+: Global variable not found: person$/,
      ),
    ]);
    await api.change(anna, id, {
      hog: `let changed := event
        changed.properties.seen := [event.timestamp, event.url, project.id, inputs.greeting, inputs.secret]
        print('the secret is', inputs.secret)
        return changed`,
    });
    const [found] = await api.stored(anna, [sent]);
    expect(found?.properties.seen).toEqual([
      ...[sent.timestamp, 'https://a.test/', anna.projectId, 'hello seen', 'pepper'],
    ]);
    const lines = await api.logs(id);
    expect(lines.at(-1)).toBe('info the secret is, ***REDACTED***');
  });

  test('have random numbers and a clock that follow from the event, so a request sent again gives the same', async () => {
    await api.transform(anna, {
      hog: 'let changed := event\nchanged.properties.seen := [generateUUIDv4(), now()]\nreturn changed',
    });
    const ben = await api.createTenant('Ben');
    await api.transform(ben, {
      hog: 'let changed := event\nchanged.properties.seen := [generateUUIDv4(), now()]\nreturn changed',
    });
    const uuid = '0197a3c0-1111-7000-8000-000000000001';
    const [[one], [other], [third]] = [
      await api.stored(anna, [{ uuid }]),
      await api.stored(ben, [{ uuid }]),
      await api.stored(anna, [{ uuid: '0197a3c0-1111-7000-8000-000000000002' }]),
    ];
    const numbers = [one, other, third].map((each) => (each?.properties.seen as string[] | undefined)?.[0]);
    expect(numbers[0]).toBe(numbers[1]);
    expect(numbers[0]).not.toBe(numbers[2]);
  });
});

test('events of webhooks and of programs pass through them', async () => {
  await api.transform(anna, setting('mark', 'true'));
  const created = await api.request(anna, 'POST', `/api/projects/${anna.projectId}/hog_functions/`, {
    ...{ type: 'source_webhook', name: 'Hook', enabled: true },
    hog: "postHogCapture({'event': 'hooked', 'distinct_id': 'ada', 'properties': {}})",
  });
  const answer = await api.app.inject({ method: 'POST', url: `/public/webhooks/${created.json().id}` });
  expect(answer.statusCode).toBe(200);
  const { rows } = await api.pool.query(
    "select properties from events where project_id = $1 and event = 'hooked'",
    [anna.projectId],
  );
  expect(rows).toEqual([{ properties: expect.objectContaining({ mark: true }) }]);
});
