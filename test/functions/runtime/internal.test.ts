import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { transaction } from '../../../db/pool.ts';
import { insertBatchExport } from '../../../exports/rows/batch-exports.ts';
import { charge } from '../../../functions/rows/states.ts';
import { WATCHER } from '../../../functions/rules/watcher.ts';
import type { Tenant } from '../../support/api.ts';
import { eventually } from '../../support/eventually.ts';
import { runtimeForFile, sender } from './world.ts';

const world = runtimeForFile();
beforeEach(async () => {
  await world.api.pool.query("update functions set enabled = false where type = 'internal_destination'");
  await world.idle();
  world.arrivals.length = 0;
});

const HOG = "fetch(inputs.url, {'body': {'event': event, 'person': person, 'source': source.name}})";
const wants = (name: string, more: object = {}) => ({
  ...sender(world.url(), { filters: { events: [{ id: name, type: 'events' }] } }),
  ...{ type: 'internal_destination', hog: HOG, name: 'Watchdog', ...more },
});
const STATE = 'hog_function_state_change';
const ACTIVITY = '$activity_log_entry_created';
const bodies = () => world.arrivals.map((one) => JSON.parse(one.body));
const left = async () => {
  const { rows } = await world.api.pool.query('select count(*)::int as count from function_internal_events');
  return rows[0].count;
};
const settled = () => eventually(async () => (await left()) === 0 && (await world.idle().then(() => true)));
const spend = (functionId: string, cost: number, tenant: Tenant = world.anna) =>
  charge(world.api.pool, [{ projectId: tenant.projectId, functionId, cost }], WATCHER);

describe('a function of the type internal_destination', () => {
  test('hears once that another function was disabled, whoever dispatches', async () => {
    const slow = await world.create(
      sender(world.url(), { filters: { events: [{ id: 'none', type: 'events' }] } }),
    );
    const id = await world.create(wants(STATE));
    const second = world.start();
    await spend(slow, 3_000);
    await settled();
    await spend(slow, 8_000);
    await settled();
    expect(
      bodies().map(({ event }) => [event.event, event.properties.state, event.properties.previous_state]),
    ).toEqual([
      [STATE, 'degraded', 'healthy'],
      [STATE, 'disabled_temporarily', 'degraded'],
    ]);
    expect(bodies()[1]).toMatchObject({
      ...{ person: null, source: 'Watchdog' },
      event: {
        properties: {
          hog_function_id: slow,
          hog_function_type: 'destination',
          disabled_until: expect.any(String),
        },
      },
    });
    expect(await world.totals(id)).toMatchObject({ triggered: 2, succeeded: 2 });
    // Events of Sluice are no events of the project.
    const { rows } = await world.api.pool.query('select from events where project_id = $1', [
      world.anna.projectId,
    ]);
    expect(rows).toEqual([]);
    await world.stop(second);
  });

  test('hears nothing of its own troubles', async () => {
    const id = await world.create(wants(STATE));
    // It is disabled by that, and not only degraded: of the latter nobody hears.
    await spend(id, 3_000);
    await spend(id, 8_000);
    await settled();
    expect(bodies()).toEqual([]);
    expect(await world.history(id)).toEqual([]);
  });

  test('hears who changed what, as its filters choose, and without secrets', async () => {
    const id = await world.create({
      ...wants(ACTIVITY),
      filters: {
        events: [{ id: ACTIVITY, type: 'events' }],
        properties: [
          { key: 'activity', value: ['updated'], operator: 'exact', type: 'event' },
          { key: 'detail.name', value: 'rename', operator: 'icontains', type: 'event' },
        ],
      },
    });
    const other = await world.create({
      ...sender(world.url(), {}),
      inputs_schema: [{ key: 'key', type: 'string', label: 'Key', secret: true }],
      inputs: { key: { value: 'first-secret' } },
      hog: 'return 1',
    });
    await world.change(other, { name: 'Renamed', inputs: { key: { value: 'second-secret' } } });
    await settled();
    const heard = bodies().filter(({ event }) => event.properties.item_id === other);
    expect(heard).toHaveLength(1);
    expect(heard[0].event).toMatchObject({
      ...{ event: ACTIVITY, distinct_id: expect.stringMatching(/./) },
      properties: {
        ...{ scope: 'HogFunction', activity: 'updated', is_system: false },
        user: { email: world.anna.email },
        detail: { name: 'Renamed' },
      },
    });
    expect(JSON.stringify(bodies())).not.toMatch(/first-secret|second-secret/);
    expect(await world.totals(id)).toMatchObject({ filtered: expect.any(Number) });
  });

  test('hears nothing of another project, and nothing from before it was enabled', async () => {
    const ben = await world.api.createTenant('Ben');
    const theirs = await world.create(sender(world.url(), {}), ben);
    await world.create(wants(STATE));
    await spend(theirs, 3_000, ben);
    const { rows } = await world.api.pool.query(
      'select from function_internal_events where project_id = $1',
      [ben.projectId],
    );
    expect(rows).toEqual([]);
    await settled();
    expect(bodies()).toEqual([]);
  });

  test('hears of a run of an export that failed, once', async () => {
    const { api, anna } = world;
    await world.create(wants('$batch_export_run_failed'));
    const { id } = await insertBatchExport(api.pool, {
      ...{ project_id: anna.projectId, name: 'To nowhere', model: 'events', destination_type: 'NoOp' },
      ...{ config: {}, interval: 'hour' },
    });
    const run = randomUUID();
    await api.pool.query(
      `insert into batch_export_runs (project_id, id, batch_export_id, workflow_id, workflow_run_id, status, data_interval_end, fence)
       values ($1, $2, $3, 'w', $4, 'Running', now(), 1)`,
      [anna.projectId, run, id, run],
    );
    await api.pool.query(
      "update batch_export_runs set status = 'Failed', latest_error = 'broken' where id = $1",
      [run],
    );
    await api.pool.query("update batch_export_runs set status = 'Failed' where id = $1", [run]);
    await settled();
    expect(bodies().map(({ event }) => event.properties)).toEqual([
      expect.objectContaining({
        batch_export_id: id,
        batch_export_name: 'To nowhere',
        run_id: run,
        error: 'broken',
      }),
    ]);
  });

  test('of two that hear of each other, neither keeps the other busy', async () => {
    const one = await world.create(wants(STATE));
    await world.create(wants(STATE));
    await spend(one, 3_000);
    await settled();
    expect(bodies()).toEqual([]);
    await spend(one, 9_000);
    await settled();
    expect(bodies()).toHaveLength(1);
  });

  test('hears of nothing that was not committed', async () => {
    const slow = await world.create(
      sender(world.url(), { filters: { events: [{ id: 'none', type: 'events' }] } }),
    );
    await world.create(wants(STATE));
    await transaction(world.api.pool, async (client) => {
      await charge(client, [{ projectId: world.anna.projectId, functionId: slow, cost: 3_000 }], WATCHER);
      throw new Error('never mind');
    }).catch(() => undefined);
    await settled();
    expect(bodies()).toEqual([]);
  });

  test('is masked like others', async () => {
    const id = await world.create(
      wants(STATE, { masking: { hash: '{event.properties.hog_function_type}', ttl: 60, threshold: null } }),
    );
    for (let index = 0; index < 3; index += 1) {
      const slow = await world.create(
        sender(world.url(), { filters: { events: [{ id: 'none', type: 'events' }] } }),
      );
      await spend(slow, 3_000);
    }
    await settled();
    expect(bodies()).toHaveLength(1);
    expect(await world.totals(id)).toMatchObject({ masked: 2, triggered: 1 });
  });

  test('whose filter fails is told in its log, and others hear all the same', async () => {
    const failing = await world.create({
      ...wants(STATE),
      filters: { properties: [{ type: 'hogql', key: "jsonParse(properties.hog_function_id) = 'x'" }] },
    });
    await world.create(wants(STATE));
    const slow = await world.create(
      sender(world.url(), { filters: { events: [{ id: 'none', type: 'events' }] } }),
    );
    await spend(slow, 3_000);
    await settled();
    expect(bodies()).toHaveLength(1);
    expect(await world.totals(failing)).toMatchObject({ filtering_failed: 1 });
    expect((await world.logs(failing)).map((one) => one.message)).toEqual([
      expect.stringContaining('Error filtering event'),
    ]);
  });

  test.each([{ filters: null }, { filters: { bytecode: 5 } }])(
    'that is damaged keeps nothing from others: $filters',
    async ({ filters }) => {
      const damaged = await world.create(wants(STATE));
      await world.create(wants(STATE));
      await world.api.pool.query('update functions set filters = $2 where id = $1', [
        damaged,
        JSON.stringify(filters),
      ]);
      const slow = await world.create(
        sender(world.url(), { filters: { events: [{ id: 'none', type: 'events' }] } }),
      );
      await spend(slow, 3_000);
      await settled();
      expect(bodies()).toHaveLength(1);
      expect(await world.totals(damaged)).toMatchObject({ filtering_failed: expect.any(Number) });
    },
  );
});
