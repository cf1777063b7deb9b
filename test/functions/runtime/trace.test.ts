import { randomUUID } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { insertBatchExport } from '../../../exports/rows/batch-exports.ts';
import type { Tenant } from '../../support/api.ts';
import { eventually } from '../../support/eventually.ts';
import { runtimeForFile } from './world.ts';

const world = runtimeForFile();

const trace = async (id: string, query = '', key: Tenant | string = world.anna) => {
  const path = `/api/projects/${world.anna.projectId}/events/${id}/trace/${query}`;
  const answer = await world.api.request(key, 'GET', path);
  return { status: answer.statusCode, ...answer.json() };
};
const FETCH = "fetch(inputs.url, {'body': {'name': event.event}})";
const sending = (filters: object) => ({
  ...{ type: 'destination', hog: FETCH, filters },
  inputs_schema: [{ key: 'url', type: 'string', label: 'URL' }],
  inputs: { url: { value: world.url('target') } },
});
const is = (key: string, value: string, type = 'event') => ({ key, value: [value], operator: 'exact', type });

test('an event shows what changed it, whom it belongs to, what ran for it and why the rest did not', async () => {
  const { api, anna } = world;
  const transformation = await world.create({
    ...{ type: 'transformation', name: 'Hider', on_error: 'refuse' },
    hog: "let changed := event\nchanged.properties.email := null\nchanged.event := 'order paid'\nreturn changed",
  });
  const sends = await world.create({ ...sending({ properties: [is('plan', 'pro')] }), name: 'Sends' });
  const picky = await world.create({
    ...{ ...sending({}), name: 'Picky' },
    filters: {
      events: [{ id: 'order paid', type: 'events' }],
      properties: [is('plan', 'pro'), is('plan', 'free'), is('vip', 'yes', 'person')],
    },
  });
  const other = await world.create({
    ...{ ...sending({ events: [{ id: 'something else', type: 'events' }] }), name: 'Other' },
  });
  const uuid = randomUUID();
  await world.capture([{ uuid, event: 'order', properties: { plan: 'pro', email: 'ada@shop.test' } }]);
  await world.idle();
  const later = await world.create({ ...sending({}), name: 'Later' });

  const found = await eventually(async () => {
    const answer = await trace(uuid);
    return answer.functions?.some((one: { invocations: unknown[] }) => one.invocations.length > 0) && answer;
  });
  expect(found).toMatchObject({
    status: 200,
    event: { id: uuid, event: 'order paid', distinct_id: 'ada', historical: false },
    person: { mode: 'full', was_merged: false },
    transformations: [
      { function_id: transformation, name: 'Hider', version: 1, properties: ['email'], fields: ['event'] },
    ],
    has_more_functions: false,
    exports: [],
  });
  expect(found.person.current_id).toBe(found.person.id);
  const byId = Object.fromEntries(
    found.functions.map((one: { function_id: string }) => [one.function_id, one]),
  );
  expect(byId[sends]).toMatchObject({
    ...{ name: 'Sends', matches: true, reason: null, conditions: null },
    invocations: [{ status: 'succeeded', attempts: [{ status: 200, attempt: 1, url: world.url('target') }] }],
  });
  expect(byId[picky]).toMatchObject({ matches: false, reason: 'conditions', invocations: [] });
  expect(byId[other]).toMatchObject({ matches: false, reason: 'event_name', invocations: [] });
  expect(byId[later]).toMatchObject({ matches: true, reason: 'enabled_later', invocations: [] });

  const explained = await trace(uuid, `?explain=${picky}`);
  const conditions = explained.functions.find(
    (one: { function_id: string }) => one.function_id === picky,
  ).conditions;
  expect(
    conditions.map(
      (one: { condition: { properties?: { key: string; value: string[] }[] }; matches: boolean }) => [
        one.condition.properties?.[0]?.value[0] ?? 'events',
        one.matches,
      ],
    ),
  ).toEqual([
    ['events', true],
    ['pro', true],
    ['free', false],
    ['yes', false],
  ]);
  expect((await trace(uuid, `?explain=${transformation}`)).attr).toBe('explain');

  // What was hidden is nowhere in the trace.
  expect(JSON.stringify(found)).not.toContain('ada@shop.test');
  await world.change(sends, { enabled: false });
  await world.change(transformation, { deleted: true });
  const stopped = (await trace(uuid)).functions.find((one: { name: string }) => one.name === 'Sends');
  expect(stopped.invocations).toHaveLength(1);
  const { rows } = await api.pool.query('select count(*)::int as count from events where project_id = $1', [
    anna.projectId,
  ]);
  expect(rows[0].count).toBe(1);
});

test('exports with completed runs over the event are listed, with whether they take it', async () => {
  const { api, anna } = world;
  const insertExport = () =>
    insertBatchExport(api.pool, {
      ...{ project_id: anna.projectId, name: 'To nowhere', model: 'events', destination_type: 'NoOp' },
      ...{ config: {}, interval: 'hour' },
    });
  const uuid = randomUUID();
  await world.capture([{ uuid, event: 'exported', properties: { plan: 'pro' } }]);
  const { rows } = await api.pool.query(
    "select inserted_at, inserted_at - interval '1 minute' as from, inserted_at + interval '1 minute' as to from events where uuid = $1",
    [uuid],
  );
  const [{ from, to }] = rows;
  const [taking, leaving] = [await insertExport(), await insertExport()];
  await api.pool.query('update batch_exports set filters = $2 where id = $1', [
    leaving.id,
    JSON.stringify([is('plan', 'free')]),
  ]);
  for (const one of [taking, leaving]) {
    for (const [status, start, end] of [
      ['Completed', from, to],
      ['Failed', from, to],
      ['Completed', '2020-01-01', '2020-01-02'],
    ]) {
      await api.pool.query(
        `insert into batch_export_runs (project_id, id, batch_export_id, workflow_id, workflow_run_id, status,
           data_interval_start, data_interval_end, fence, manifest_key, finished_at)
         values ($1, $2, $3, 'w', $4, $5, $6, $7, 1, 'folder/manifest.json', clock_timestamp())`,
        [anna.projectId, randomUUID(), one.id, randomUUID(), status, start, end],
      );
    }
  }
  const found = await trace(uuid);
  expect(found.status).toBe(200);
  const shown = found.exports.map((one: Record<string, unknown>) => [
    ...[one.batch_export_id, one.takes_event],
    (one.runs as { manifest_key: string }[]).map((each) => each.manifest_key),
  ]);
  expect(shown.toSorted()).toEqual(
    [
      [taking.id, true, ['folder/manifest.json']],
      [leaving.id, false, ['folder/manifest.json']],
    ].toSorted(),
  );
});

test('a key sees the parts that it may read, and only events of its project', async () => {
  const { api, anna } = world;
  const uuid = randomUUID();
  await world.capture([{ uuid, event: 'mine' }]);
  const { value } = await api.createKey(anna, { scopes: ['query:read'] });
  expect(await trace(uuid, '', value)).toMatchObject({
    ...{ status: 200, functions: null, transformations: null, exports: null },
    event: { event: 'mine' },
  });
  const { value: wrong } = await api.createKey(anna, { scopes: ['person:read'] });
  expect((await trace(uuid, '', wrong)).status).toBe(403);
  expect((await trace(randomUUID())).status).toBe(404);
  expect(await trace('nonsense')).toMatchObject({ status: 400, detail: 'Invalid UUID' });
  const ben = await api.createTenant('Ben');
  expect((await trace(uuid, '', ben)).status).toBe(404);
  const own = await api.request(ben, 'GET', `/api/projects/${ben.projectId}/events/${uuid}/trace/`);
  expect(own.statusCode).toBe(404);
});
