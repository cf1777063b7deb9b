import { beforeEach, describe, expect, test } from '@jest/globals';
import { transaction } from '../../../db/pool.ts';
import { deleteForgotten } from '../../../functions/rows/forgotten-persons.ts';
import { deleteOfPersons } from '../../../functions/rows/upkeep.ts';
import { PRODUCTS } from '../../../products.ts';
import { TENANCY_STEPS } from '../../../tenancy/maintenance.ts';
import { eventually } from '../../support/eventually.ts';
import { lockedOut } from '../../support/locked-out.ts';
import { unstopped } from './replay-world.ts';
import { runtimeForFile, sender } from './world.ts';

const world = runtimeForFile({ starts: false });
beforeEach(() => {
  world.arrivals.length = 0;
});
const paid = { filters: { events: [{ id: 'paid', type: 'events' }] } };
const FUNCTIONS = PRODUCTS.filter(({ name }) => name === 'functions').flatMap(({ tables }) => tables);
const rowsOf = async (projectId: number) => {
  const counts: Record<string, number> = {};
  for (const { name } of FUNCTIONS) {
    const { rows } = await world.api.pool.query(
      `select count(*)::int as count from ${name} where project_id = $1`,
      [projectId],
    );
    if (rows[0].count > 0) counts[name] = rows[0].count;
  }
  return counts;
};

test('a project that is deleted while its functions run takes all of it along, and others go on', async () => {
  const bob = await world.api.createTenant('Bob');
  await world.create(sender(world.url('bob'), paid), bob);
  const id = await world.create(sender(world.url('anna'), paid));
  const runtime = world.start();
  world.answer((_arrival, response) => void setTimeout(() => response.end('{}'), 50));
  const send = async (tenant: typeof bob) => {
    for (let n = 0; n < 20; n += 1) {
      await world.capture(
        Array.from({ length: 50 }, (_, index) => ({ event: 'paid', properties: { id: n * 50 + index } })),
        tenant,
      );
    }
  };
  await Promise.all([send(bob), send(world.anna)]);
  await eventually(async () => world.arrivals.filter(({ path }) => path === 'bob').length > 100);
  const path = `/api/organizations/${bob.organizationId}/projects/${bob.projectId}/`;
  expect((await world.api.request(bob, 'DELETE', path)).statusCode).toBe(204);
  await world.idle();
  // Something that ended while the project was deleted.
  await world.api.pool.query(
    `insert into function_logs (project_id, function_id, instance_id, timestamp, level, message)
     values ($1, gen_random_uuid(), gen_random_uuid(), now(), 'info', 'late')`,
    [bob.projectId],
  );
  const schedules = { stopProject: async () => undefined };
  for (const step of TENANCY_STEPS.filter(({ name }) =>
    ['stopDeletedProjects', 'deleteProjectData'].includes(name),
  )) {
    const deps = { pool: world.api.pool, keyring: undefined, products: PRODUCTS, schedules };
    await step.run({ ...deps, activityLog: { entries: 1, bytes: 1, days: 1 } }, unstopped());
  }
  await world.stop(runtime);
  expect(await rowsOf(bob.projectId)).toEqual({});
  expect(await world.history(id)).toHaveLength(1_000);
  expect(new Set((await world.history(id)).map((one) => one.status))).toEqual(new Set(['succeeded']));
  await world.change(id, { enabled: false });
});

describe('of a person that is deleted', () => {
  const remove = async (distinctId: string) => {
    const { rows } = await world.api.pool.query(
      'select person_id as id from person_distinct_ids where project_id = $1 and distinct_id = $2',
      [world.anna.projectId, distinctId],
    );
    const path = `/api/projects/${world.anna.projectId}/persons/${rows[0].id}/`;
    const answer = await world.api.request(world.anna, 'DELETE', path);
    expect(answer.statusCode).toBeLessThan(300);
  };
  const of = (distinctId: string) => ({
    ...{ event: 'paid', distinct_id: distinctId },
    properties: { id: distinctId, $set: { mail: `${distinctId}@example.com` } },
  });
  /** A function that tells others of its person, in its log, too. */
  const telling = (path: string) => ({
    ...{ ...sender(world.url(path), paid), delivery: { retry: { max_attempts: 1 } } },
    hog: "print(person.properties.mail)\nfetch(inputs.url, {'body': {'mail': person.properties.mail}})",
  });
  const saying = async (text: string) => {
    const counts: Record<string, number> = {};
    for (const table of ['function_queue', 'function_invocations', 'function_logs']) {
      const { rows } = await world.api.pool.query(
        `select count(*)::int as count from ${table} t where project_id = $1 and t::text like $2`,
        [world.anna.projectId, `%${text}%`],
      );
      if (rows[0].count > 0) counts[table] = rows[0].count;
    }
    return counts;
  };

  test('what somebody did who became part of it goes, too: what waits, what has ended, and their logs', async () => {
    world.answer((_arrival, response) => {
      response.statusCode = 422;
      response.end('no');
    });
    const ended = await world.create(telling('ended'));
    const waits = await world.create({ ...telling('waits'), paused: true });
    const runtime = world.start();
    await world.capture([{ event: 'seen', distinct_id: 'customer' }, ...['visitor', 'other'].map(of)]);
    await eventually(async () => (await world.history(ended)).length === 2);
    await world.capture([
      { event: '$identify', distinct_id: 'customer', properties: { $anon_distinct_id: 'visitor' } },
    ]);
    expect(await saying('visitor')).toEqual({ function_queue: 1, function_invocations: 1, function_logs: 1 });
    await remove('customer');
    expect(await saying('visitor')).toEqual({});
    expect(await saying('other')).toEqual({ function_queue: 1, function_invocations: 1, function_logs: 1 });
    await world.change(ended, { enabled: false });
    await world.change(waits, { enabled: false });
    await world.idle();
    await world.stop(runtime);
  });

  test('what functions have still to see is left out, and what the same person does later is delivered', async () => {
    const id = await world.create(sender(world.url('late'), paid));
    await world.capture(['ghost', 'guest'].map(of));
    await remove('ghost');
    await world.capture([{ ...of('ghost'), properties: { id: 'again' } }]);
    const runtime = world.start();
    await world.idle();
    const bodies = world.arrivals
      .filter(({ path }) => path === 'late')
      .map(({ body }) => JSON.parse(body).id);
    expect(bodies.sort()).toEqual(['again', 'guest']);
    expect(await deleteForgotten(world.api.pool, 100)).toBe(1);
    await world.change(id, { enabled: false });
    await world.stop(runtime);
  });
});

describe('of a person that is deleted nothing is left', () => {
  const personId = '00000000-0000-4000-8000-00000000abcd';
  let id: string;
  beforeEach(async () => {
    id = await world.create(sender(world.url()));
  });
  const add = (table: 'function_queue' | 'function_invocations') =>
    table === 'function_queue'
      ? `insert into function_queue (id, project_id, function_id, version, person_id, clock, seed)
         values (gen_random_uuid(), ${world.anna.projectId}, '${id}', 1, '${personId}', now(), 1)`
      : `insert into function_invocations (id, project_id, function_id, version, person_id, status, attempts, created_at, finished_at)
         values (gen_random_uuid(), ${world.anna.projectId}, '${id}', 1, '${personId}', 'failed', '[]', now(), now())`;
  const left = async () => {
    const { rows } = await world.api.pool.query(
      `select (select count(*) from function_queue where person_id = $1)::int
         + (select count(*) from function_invocations where person_id = $1)::int as left`,
      [personId],
    );
    return rows[0].left;
  };
  const forget = () =>
    transaction(world.api.pool, (client) => deleteOfPersons(client, world.anna.projectId, [personId]));

  test('when an invocation of it ends meanwhile', async () => {
    await world.api.pool.query(add('function_queue'));
    await lockedOut(world.api.pool, {
      sql: `delete from function_queue where person_id = '${personId}'; ${add('function_invocations')}`,
      meanwhile: forget,
    });
    expect(await left()).toBe(0);
  });

  test('when an invocation of it is run again meanwhile', async () => {
    await world.api.pool.query(add('function_invocations'));
    await lockedOut(world.api.pool, {
      sql: `update function_invocations set rerun_at = now() where person_id = '${personId}'; ${add('function_queue')}`,
      meanwhile: forget,
    });
    expect(await left()).toBe(0);
  });
});
