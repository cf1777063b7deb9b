import { beforeAll, describe, expect, test } from '@jest/globals';
import { replayPages } from '../../../functions/runs/replays.ts';
import { replayWorkflowId } from '../../../schedules/functions/function-schedules.ts';
import { searchAttributes } from '../../../workflows/names.ts';
import { insertPerson } from '../../support/rows.ts';
import { replayWorldForFile, type Shown, unstopped } from './replay-world.ts';

const world = replayWorldForFile();
const PEOPLE = 1_200;
const personId = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
const greeter = (path: string, more: object = {}) => ({
  hog: "fetch(inputs.url, {'method': 'POST', 'body': inputs.body})",
  inputs_schema: [
    { key: 'url', type: 'string' },
    { key: 'body', type: 'json' },
  ],
  inputs: {
    url: { value: world.url(path) },
    body: {
      value: {
        ...{ event: '{event.event}', id: '{person.properties.number}', who: '{event.distinct_id}' },
        ...{ person: '{person.id}', at: '{event.timestamp}' },
      },
    },
  },
  ...more,
});
const arrived = (path: string) =>
  world.arrivals.filter((one) => one.path === path).map(({ body }) => JSON.parse(body));
const begin = async (id: string, body: object = {}) =>
  (await world.begin(id, { rate_per_second: null, ...body }, 'broadcast/')).broadcast as Shown;

beforeAll(async () => {
  for (let number = 0; number < PEOPLE; number += 1) {
    await insertPerson(world.api.pool, world.anna.projectId, {
      ...{ id: personId(number), distinct_ids: [`d-${number}`, `e-${number}`] },
      properties: { number, plan: number % 3 === 0 ? 'paid' : 'free' },
    });
  }
  const other = await world.api.createTenant('Other');
  await insertPerson(world.api.pool, other.projectId, {
    ...{ id: personId(0), distinct_ids: ['theirs'], properties: { plan: 'paid' } },
  });
});

describe('a broadcast', () => {
  test('runs a function once for each person that matches its conditions', async () => {
    const properties = [{ key: 'plan', value: 'paid', operator: 'exact', type: 'person' }];
    const events = [{ id: 'order', type: 'events' }];
    const id = await world.create(
      greeter('paid', { name: 'Greet [us](http://a.b)', filters: { properties, events } }),
    );
    const begun = await begin(id);
    expect(begun).toMatchObject({ kind: 'broadcast', status: 'running', after: null, stored_until: null });
    const handle = world.client.workflow.getHandle(replayWorkflowId({ kind: 'broadcast', id: begun.id }));
    const described = await handle.describe();
    expect(described.type).toBe('functionBroadcast');
    expect(described.typedSearchAttributes.get(searchAttributes.kind)).toBe('function-broadcast');
    expect(await described.staticSummary()).toBe(
      'Run function Greet us (http a.b) of project Default project for persons',
    );
    const ended = await world.until(id, begun.id, 'completed');
    expect(ended).toMatchObject({ total: PEOPLE, scanned: PEOPLE, matched: 400, queued: 400 });
    await world.idle();
    const bodies = arrived('paid').sort((a, b) => a.id - b.id);
    expect(bodies.map((one) => one.id)).toEqual(Array.from({ length: 400 }, (_, index) => index * 3));
    expect(bodies[1]).toEqual({
      ...{ event: '$broadcast', id: 3, who: 'd-3', person: personId(3), at: '2026-01-02T03:04:05Z' },
    });
    expect(await world.totals(id)).toMatchObject({ triggered: 400, succeeded: 400 });
    expect((await world.ask(id, 'GET', 'replays/?kind=broadcast')).body.results).toEqual([ended]);
  });

  test('takes conditions of its own, counts beforehand, and is one at a time', async () => {
    const id = await world.create(greeter('own'));
    const properties = [{ key: 'number', value: 5, operator: 'lt', type: 'person' }];
    const counted = await begin(id, { properties, dry_run: true });
    expect(await world.until(id, counted.id, 'completed')).toMatchObject({ matched: 5, queued: 5 });
    expect(await world.waiting(id)).toEqual([]);
    const begun = await begin(id, { properties });
    await world.until(id, begun.id, 'completed');
    await world.idle();
    expect(
      arrived('own')
        .map((one) => one.id)
        .sort(),
    ).toEqual([0, 1, 2, 3, 4]);
    const slow = await begin(id, { rate_per_second: 1 });
    const again = await world.ask(id, 'POST', 'broadcast/');
    expect(again.status).toBe(409);
    await world.ask(id, 'POST', `replays/${slow.id}/cancel/`);
  });

  test('runs the mappings whose filters match its event', async () => {
    const mapped = (name: string, events: object[], more: object = {}) => ({
      ...{ name, inputs: {}, filters: { events }, ...more },
    });
    const mappings = [
      mapped('Orders', [{ id: 'order', type: 'events' }]),
      mapped('Broadcasts', [{ id: '$broadcast', type: 'events' }]),
      mapped('Switched off', [], { disabled: true }),
    ];
    const id = await world.create(greeter('mapped', { mappings }));
    const begun = await begin(id, {
      properties: [{ key: 'number', value: 2, operator: 'lt', type: 'person' }],
    });
    await world.until(id, begun.id, 'completed');
    await world.idle();
    expect((await world.history(id)).map((one) => one.mapping)).toEqual([1, 1]);
  });

  test('does each page once, by however many workers', async () => {
    const id = await world.create(greeter('once'));
    const begun = await begin(id, { rate_per_second: 1 });
    await world.ask(id, 'POST', `replays/${begun.id}/cancel/`);
    await world.idle();
    await world.api.pool.query(
      `update function_replays set status = 'running', rate_per_second = null, page = 0, horizon = now(), last_id = null, scanned = 0,
         matched = 0, queued = 0, finished_at = null where id = $1`,
      [begun.id],
    );
    const before = (await world.history(id)).length;
    const reference = { projectId: world.anna.projectId, replayId: begun.id };
    await Promise.all(Array.from({ length: 3 }, () => replayPages(world.steps, reference, unstopped())));
    await world.until(id, begun.id, 'completed');
    await world.idle();
    const history = (await world.history(id)).slice(before);
    expect(new Set(history.map((one) => one.person_id)).size).toBe(PEOPLE);
    expect(history).toHaveLength(PEOPLE);
  });

  test('is refused with conditions that mean nothing, and while the function is disabled', async () => {
    const id = await world.create(greeter('refused'));
    const properties = [{ key: 'plan', operator: 'resembles', value: 1, type: 'person' }];
    const answer = await world.ask(id, 'POST', 'broadcast/', { properties });
    expect(answer.status).toBe(400);
    expect(answer.body.detail).toContain('Invalid filter configuration');
    await world.change(id, { enabled: false });
    const disabled = await world.ask(id, 'POST', 'broadcast/');
    expect(disabled).toMatchObject({ status: 400 });
    expect(disabled.body.detail).toContain('The function is disabled.');
  });
});
