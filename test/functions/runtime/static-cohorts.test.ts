// Functions whose filters name static cohorts: who is listed is looked up wherever a filter is asked.
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { storeCohort } from '../../flags/support.ts';
import { insertPerson } from '../../support/rows.ts';
import { replayWorldForFile, type Shown } from './replay-world.ts';
import { sender } from './world.ts';

const world = replayWorldForFile({ delivers: false });
const person = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
const [ADA, BOB, EVE] = [person(1), person(2), person(3)];
const projects = () => `/api/projects/${world.anna.projectId}`;
let vips: number;
/** Those with the plan `pro` who are not vips. */
let others: number;

const asks = (id: number, operator = 'in') => ({ key: 'id', type: 'cohort', operator, value: id });
const hogql = (key: string) => ({ key, type: 'hogql', value: null });
const only = (...properties: object[]) => ({ filters: { properties } });
const send = async (method: 'POST' | 'PATCH' | 'GET', path: string, body?: object) => {
  const answer = await world.api.request(world.anna, method, `${projects()}/${path}`, body);
  return { status: answer.statusCode, body: answer.json() };
};
const arrived = (path: string) =>
  world.arrivals
    .filter((one) => one.path === path)
    .map(({ body }) => JSON.parse(body).id)
    .sort();
const list = (cohort: number, id: string) =>
  world.api.pool.query(
    'insert into cohort_people (project_id, cohort_id, person_id) values ($1, $2, $3) on conflict do nothing',
    [world.anna.projectId, cohort, id],
  );
const unlist = (cohort: number, id: string) =>
  world.api.pool.query('delete from cohort_people where cohort_id = $1 and person_id = $2', [cohort, id]);

beforeAll(async () => {
  const { pool } = world.api;
  const { projectId } = world.anna;
  for (const [number, name] of ['ada', 'bob', 'eve'].entries()) {
    await insertPerson(pool, projectId, {
      ...{ id: person(number + 1), distinct_ids: [name] },
      properties: { id: name, plan: name === 'ada' ? 'free' : 'pro' },
    });
  }
  vips = await storeCohort(pool, projectId, { name: 'vips', isStatic: true });
  const pro = { key: 'plan', type: 'person', operator: 'exact', value: 'pro' };
  others = await storeCohort(pool, projectId, {
    name: 'others',
    properties: { type: 'AND', values: [pro, { ...asks(vips), negation: true }] },
  });
  await list(vips, ADA);
  await list(vips, BOB);
});

/** What functions with these filters get of three events, one of each person. */
async function ran(...filters: object[]): Promise<string[][]> {
  const paths = filters.map(() => randomUUID());
  for (const [index, each] of filters.entries()) {
    await world.create(sender(world.url(paths[index]), each));
  }
  await world.capture(
    ['ada', 'bob', 'eve'].map((id) => ({ distinct_id: id, event: 'seen', properties: { id } })),
  );
  const runtime = world.start();
  await world.idle();
  await world.stop(runtime);
  await world.api.pool.query('update functions set enabled = false, enabled_at = null');
  return paths.map(arrived);
}

describe('a function runs for whoever is listed', () => {
  test('in a static cohort, in one that a cohort names, in a mapping, in HogQL, and for all others', async () => {
    const mapping = { name: 'm', ...only(asks(vips)), inputs_schema: [], inputs: {} };
    const seen = await ran(
      only(asks(vips)),
      only(asks(vips, 'not_in')),
      only(asks(others)),
      { mappings: [mapping] },
      only(hogql(`person_id in cohort ${vips} and properties.id != 'bob'`)),
      only(hogql(`not (person.id NOT IN COHORT ${others})`)),
      { filters: { events: [{ id: 'seen', type: 'events', properties: [asks(vips)] }] } },
    );
    expect(seen).toEqual([
      ['ada', 'bob'],
      ['eve'],
      ['eve'],
      ['ada', 'bob'],
      ['ada'],
      ['eve'],
      ['ada', 'bob'],
    ]);
  });

  test('when it is asked, and not when the event came in', async () => {
    await world.capture([{ distinct_id: 'eve', event: 'before' }]);
    const path = randomUUID();
    await world.create(sender(world.url(path), only(asks(vips))));
    await world.capture(['bob', 'eve'].map((id) => ({ distinct_id: id, properties: { id } })));
    await list(vips, EVE);
    await unlist(vips, BOB);
    const runtime = world.start();
    await world.idle();
    expect(arrived(path)).toEqual(['eve']);
    await world.stop(runtime);
    await unlist(vips, EVE);
    await list(vips, BOB);
    await world.api.pool.query('update functions set enabled = false, enabled_at = null');
  });

  test('and never for an event without a person, or for a person of another project', async () => {
    const theirs = await world.api.createTenant('Theirs');
    const foreign = await storeCohort(world.api.pool, theirs.projectId, { name: 'theirs', isStatic: true });
    await world.api.pool.query(
      'insert into cohort_people (project_id, cohort_id, person_id) values ($1, $2, $3)',
      [theirs.projectId, foreign, EVE],
    );
    const [listed, unlisted] = [randomUUID(), randomUUID()];
    await world.create(sender(world.url(listed), only(asks(vips))));
    await world.create(sender(world.url(unlisted), only(asks(vips, 'not_in'))));
    const personless = { $process_person_profile: false, id: 'nobody' };
    await world.capture([{ distinct_id: 'nobody', properties: personless }]);
    // The cohort is asked about in this project, also where a row with its id belongs to another one.
    await world.api.pool.query(
      'insert into cohort_people (project_id, cohort_id, person_id) values ($1, $2, $3)',
      [theirs.projectId, vips, EVE],
    );
    await world.capture([{ distinct_id: 'eve', properties: { id: 'eve' } }]);
    const runtime = world.start();
    await world.idle();
    expect([arrived(listed), arrived(unlisted)]).toEqual([[], ['eve', 'nobody']]);
    await world.stop(runtime);
    await world.api.pool.query('update functions set enabled = false, enabled_at = null');
  });
});

describe('what is tried sees who is listed', () => {
  const configuration = (...properties: object[]) => ({ hog: 'return 1', filters: { properties } });
  const tried = async (body: object) => (await send('POST', 'hog_functions/new/invocations/', body)).body;

  test('in a test run: with an event of the caller, a stored one, and the newest that matches', async () => {
    const event = { event: 'seen', distinct_id: 'x' };
    for (const [id, status] of [
      [ADA, 'success'],
      [ADA.toUpperCase(), 'success'],
      [EVE, 'skipped'],
      ['no uuid', 'skipped'],
    ]) {
      const globals = { event, person: { id, properties: {} } };
      const answer = await tried({ configuration: configuration(asks(vips)), globals });
      expect([id, answer.status, answer.errors]).toEqual([id, status, []]);
    }
    const nobody = await tried({ configuration: configuration(asks(vips)), globals: { event } });
    expect([nobody.status, nobody.errors]).toEqual(['skipped', []]);
    const [bob, eve] = [randomUUID(), randomUUID()];
    await world.capture([{ uuid: bob, distinct_id: 'bob', event: 'stored' }]);
    await world.capture([{ uuid: eve, distinct_id: 'eve', event: 'stored' }]);
    const runs = async (event_id: string) =>
      (await tried({ configuration: configuration(asks(vips)), event_id })).status;
    expect([await runs(bob), await runs(eve)]).toEqual(['success', 'skipped']);
    const newest = await tried({
      configuration: {
        ...configuration(asks(vips)),
        filters: { events: [{ id: 'stored', type: 'events' }], properties: [asks(vips)] },
      },
      use_newest_event: true,
    });
    expect([newest.status, newest.event?.distinct_id]).toEqual(['success', 'bob']);
  });

  test('in a preview, and in the trace of an event', async () => {
    const at = '2026-04-01T10:00:00.000Z';
    const uuids = ['ada', 'bob', 'eve'].map((id) => ({ id, uuid: randomUUID() }));
    await world.capture(
      uuids.map(({ id, uuid }) => ({ uuid, distinct_id: id, event: 'previewed', timestamp: at })),
    );
    const { body: preview } = await send('POST', 'hog_functions/new/preview/', {
      ...{ configuration: configuration(asks(vips)), after: '2026-04-01', before: '2026-04-02' },
    });
    expect(preview.proposed).toMatchObject({ matched: 2, errors: [] });
    expect(
      preview.sample.map((one: Shown & { event: Shown; proposed: Shown }) => [
        one.event.distinct_id,
        one.proposed.status,
      ]),
    ).toEqual(
      expect.arrayContaining([
        ['ada', 'success'],
        ['bob', 'success'],
      ]),
    );
    const id = await world.create(sender(world.url('traced'), only(asks(vips), asks(others, 'not_in'))));
    const answers: unknown[] = [];
    for (const { uuid } of uuids) {
      const { body } = await send('GET', `events/${uuid}/trace/?explain=${id}`);
      const found = body.functions.find((one: Shown) => one.function_id === id);
      answers.push([found.matches, ...found.conditions.map((one: Shown) => one.matches)]);
    }
    expect(answers).toEqual([
      [true, true, true],
      [true, true, true],
      [false, false, false],
    ]);
    await world.change(id, { enabled: false });
  });
});

test('replays and broadcasts run for whoever is listed', async () => {
  await world.capture(
    ['ada', 'bob', 'eve'].map((id) => ({
      ...{ distinct_id: id, event: 'old', timestamp: '2026-05-01T10:00:00.000Z', properties: { id } },
    })),
  );
  const id = await world.create(sender(world.url('again'), only(asks(vips))));
  const replay = await world.begin(id, {
    ...{ after: '2026-05-01T00:00:00Z', before: '2026-05-02T00:00:00Z', dry_run: true },
  });
  expect(await world.until(id, replay.id, 'completed')).toMatchObject({ scanned: 3, matched: 2 });
  const count = async (body: object) => {
    const { broadcast } = await world.begin(id, { dry_run: true, ...body }, 'broadcast/');
    return (await world.until(id, (broadcast as Shown).id, 'completed')).matched;
  };
  // By the conditions of the function, and by others.
  expect(await count({})).toBe(2);
  expect(await count({ properties: [asks(others)] })).toBe(1);
  expect(await count({ properties: [hogql(`person_id not in cohort ${vips}`)] })).toBe(1);
  const mapping = { name: 'm', ...only(asks(others)), inputs_schema: [], inputs: {} };
  await world.change(id, { filters: {}, mappings: [mapping] });
  expect(await count({})).toBe(1);
  await world.change(id, { enabled: false });
});

describe('a static cohort that a function names', () => {
  test('cannot be deleted, also where only HogQL names it', async () => {
    const id = await storeCohort(world.api.pool, world.anna.projectId, { name: 'kept', isStatic: true });
    const named = await world.create(sender(world.url(), only(hogql(`person_id IN COHORT ${id}`))));
    expect((await send('GET', `cohorts/${id}/used_by/`)).body.functions).toMatchObject([{ id: named }]);
    const refused = await send('PATCH', `cohorts/${id}/`, { deleted: true });
    expect([refused.status, refused.body.detail]).toEqual([400, expect.stringContaining(named)]);
    await world.change(named, { enabled: false });
    expect((await send('PATCH', `cohorts/${id}/`, { deleted: true })).status).toBe(200);
    const again = await send('PATCH', `hog_functions/${named}/`, { enabled: true });
    expect([again.status, again.body.attr, again.body.detail]).toEqual([
      ...[400, 'filters', expect.stringContaining(`Cohort ${id} does not exist in this project`)],
    ]);
  });

  test.each([
    ['distinct_id in cohort 1', 'Only a person is in a cohort. Write person_id IN COHORT 5'],
    ["person_id in cohort 'vips'", 'A cohort must be given by its number: person_id IN COHORT 5'],
    ['person_id in cohort 2147483647', 'Cohort 2147483647 does not exist in this project, or was deleted'],
  ])('is refused in HogQL: %s', async (text, message) => {
    const { status, body } = await send('POST', 'hog_functions/', {
      ...{ hog: 'return 1', enabled: true, ...only(hogql(text)) },
    });
    expect([status, body.attr, body.detail]).toEqual([400, 'filters', expect.stringContaining(message)]);
  });
});
