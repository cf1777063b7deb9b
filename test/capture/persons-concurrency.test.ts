import { beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { personId } from '../../db/person-ids.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { createTenant, type Tenant } from '../support/api.ts';
import { databaseForFile } from '../support/database.ts';
import { type ApiProgram, programsForFile } from '../support/programs.ts';
import { rounds } from '../support/rounds.ts';
import { allocateNamespace } from '../support/temporal.ts';
import {
  type ModelPerson,
  modelOf,
  type Operation,
  operation,
  permutations,
  propertiesOf,
  THREE_LOGINS,
} from './person-model.ts';
import { carryAll } from './support.ts';

const programs = programsForFile();
const database = databaseForFile();
let apis: ApiProgram[];

async function startApi(): Promise<ApiProgram> {
  const { address, namespace } = allocateNamespace();
  const env = { DATABASE_URL: database.url, TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace };
  return programs.ready(await programs.startApi(env));
}

beforeAll(async () => {
  apis = await Promise.all([startApi(), startApi(), startApi()]);
});

const seed = Date.now() % 1_000_000;

const wireEvent = (one: Operation) => ({
  uuid: uuidv7(),
  event: one.event,
  distinct_id: one.id,
  properties: propertiesOf(one),
});

const send = (api: ApiProgram, tenant: Tenant, batch: object[]) =>
  fetch(`${api.url}/batch/`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ api_key: tenant.projectToken, batch }),
  });

async function stored(projectId: number): Promise<(Omit<ModelPerson, 'founder'> & { person: string })[]> {
  const { rows } = await database.pool.query(
    `select p.id as person, p.is_identified as identified, p.properties,
       array_agg(d.distinct_id order by d.distinct_id) filter (where d.distinct_id is not null) as ids
     from persons p left join person_distinct_ids d on d.project_id = p.project_id and d.person_id = p.id
     where p.project_id = $1 group by p.project_id, p.id order by min(d.distinct_id)`,
    [projectId],
  );
  return rows;
}

/** Distinct_ids that lead nowhere; there must be none. */
async function orphans(projectId: number): Promise<unknown[]> {
  const { rows } = await database.pool.query(
    `select distinct_id from person_distinct_ids d where project_id = $1
       and not exists (select from persons p where p.project_id = d.project_id and p.id = d.person_id)`,
    [projectId],
  );
  return rows;
}

/** The properties that were set by name, and not copied from events. */
const named = (properties: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(properties).filter(([name]) => !name.startsWith('$')));

/** Sends the batches of each case to three processes at once, and compares what is stored with all orders of the batches. */
async function expectSomeOrder(
  cases: readonly Operation[][][],
  eventOf: (one: Operation, number: number) => object = wireEvent,
): Promise<void> {
  const tenants = await Promise.all(cases.map((_, index) => createTenant(database.pool, `Case ${index}`)));
  for (let at = 0; at < cases.length; at += 20) {
    await Promise.all(
      cases.slice(at, at + 20).map(async (batches, index) => {
        const tenant = tenants[at + index] as Tenant;
        const answers = await Promise.all(
          batches.map((batch, turn) =>
            send(
              apis[turn % apis.length] as ApiProgram,
              tenant,
              batch.map((one, number) => eventOf(one, turn * 10 + number)),
            ),
          ),
        );
        expect(answers.map((answer) => answer.status)).toEqual(batches.map(() => 200));
      }),
    );
  }
  for (const [index, batches] of cases.entries()) {
    const { projectId } = tenants[index] as Tenant;
    expect(await orphans(projectId)).toEqual([]);
    const is = JSON.stringify(
      (await stored(projectId)).map(({ person, identified, ids, properties }) => [
        ...[person, identified, ids, named(properties)],
      ]),
    );
    const mayBe = permutations(batches).map((order) =>
      JSON.stringify(
        modelOf(order.flat()).map(({ founder, identified, ids, properties }) => [
          ...[personId(projectId, founder), identified, ids, properties],
        ]),
      ),
    );
    if (!mayBe.includes(is)) {
      throw new Error(
        `seed ${seed}: ${JSON.stringify(batches)} in no order ends in ${is}, but in one of\n${[...new Set(mayBe)].join('\n')}`,
      );
    }
  }
}

test('whatever is sent to three API processes at once ends as if it had come in some order', async () => {
  const batch = fc.oneof(
    { weight: 3, arbitrary: operation.map((one) => [one]) },
    { weight: 1, arbitrary: fc.array(operation, { minLength: 2, maxLength: 3 }) },
  );
  const batches = fc.array(batch, { minLength: 2, maxLength: 5 });
  await expectSomeOrder(fc.sample(batches, { seed, numRuns: rounds(60, 120) }));
});

test('pages that nobody set by name, sent meanwhile and carried by two at once, change nothing of the order', async () => {
  const batches = fc.array(fc.array(operation, { minLength: 1, maxLength: 2 }), {
    minLength: 2,
    maxLength: 4,
  });
  const cases = fc.sample(batches, { seed: seed + 1, numRuns: rounds(30, 60) });
  let isDone = false;
  const carriers = [1, 2].map(async () => {
    while (!isDone) await carryAll(database.pool, { persons: 2, events: 20, bytes: 2_000 });
  });
  try {
    await expectSomeOrder(cases, (one, number) => {
      const event = wireEvent(one);
      return {
        ...event,
        properties: { ...event.properties, $browser: `browser ${number}`, $current_url: '/' },
      };
    });
  } finally {
    isDone = true;
    await Promise.all(carriers);
  }
});

test('three logins on one device, at once and in all cuts into batches, end as if they had come in some order', async () => {
  const orders = permutations(THREE_LOGINS);
  const few = orders.filter((_, index) => index % 6 === 0);
  const apart = few.map((order) => order.map((one) => [one]));
  const halves = few.map((order) => [order.slice(0, 3), order.slice(3)]);
  // In one batch, the order of the events is that in which they count.
  const whole = orders.filter((_, index) => index % rounds(3, 1) === 0).map((order) => [order]);
  await expectSomeOrder([...apart, ...halves, ...whole]);
});

test('a second person whose merge is refused is identified, whatever becomes of the first meanwhile', async () => {
  const refused: Operation = { event: '$identify', id: 'b', other: 'a' };
  const identified: Operation = { event: '$identify', id: 'a', other: 'x' };
  const known: Operation = { event: 'seen', id: 'b' };
  const rivals: Operation[] = [
    { event: '$merge_dangerously', id: 'c', other: 'a' },
    { event: '$merge_dangerously', id: 'b', other: 'a' },
    { event: '$create_alias', id: 'a', other: 'b' },
    { event: '$identify', id: 'a', other: 'b' },
    { event: '$identify', id: 'c', other: 'b' },
  ];
  const cases = rivals.flatMap((rival) => [
    [[identified, known, refused], [rival]],
    [[identified, known], [refused], [rival]],
    [[identified], [known, refused], [rival], [refused]],
  ]);
  await expectSomeOrder([...cases, ...cases]);
});

test('merges in all directions, with one process killed on the way, lose no id and no property', async () => {
  const tenant = await createTenant(database.pool, 'Storm');
  const doomed = await startApi();
  const targets = [...apis, doomed];
  const ids = Array.from({ length: 60 }, (_, index) => `id ${index}`);
  const random = fc.sample(
    fc.record({
      from: fc.nat(59),
      // Islands of ten: whoever belongs together is known, however the merges come.
      step: fc.integer({ min: 1, max: 9 }),
      merges: fc.boolean(),
      target: fc.nat(3),
    }),
    { seed, numRuns: 1_200 },
  );
  const batches: ReturnType<typeof wireEvent>[][] = [];
  const expected = new Map<string, Record<string, number>>(ids.map((id) => [id, {}]));
  const leader = new Map(ids.map((id) => [id, id]));
  const leaderOf = (id: string): string => {
    const next = leader.get(id) as string;
    return next === id ? id : leaderOf(next);
  };
  for (const [index, { from, step, merges }] of random.entries()) {
    const id = ids[from] as string;
    const other = ids[from - (from % 10) + ((from + step) % 10)] as string;
    const key = `key ${index}`;
    const event = merges && index % 3 === 0 ? '$merge_dangerously' : 'seen';
    const one: Operation = { event, id, set: { [key]: index } };
    if (event === '$merge_dangerously') {
      one.other = other;
      leader.set(leaderOf(id), leaderOf(other));
    }
    Object.assign(expected.get(id) as object, { [key]: index });
    if (index % 4 === 0) batches.push([]);
    batches.at(-1)?.push(wireEvent(one));
  }

  let answered = 0;
  const lane = async (number: number) => {
    for (let at = number; at < batches.length; at += 12) {
      const batch = batches[at] as object[];
      // Until somebody has acknowledged it; then it must not be lost.
      for (let turn = random[at]?.target ?? 0; ; turn += 1) {
        const answer = await send(targets[turn % 4] as ApiProgram, tenant, batch).catch(() => undefined);
        if (answer?.status === 200) break;
        if (answer && answer.status !== 503) throw new Error(`refused: ${await answer.text()}`);
      }
      answered += 1;
      if (answered === 100) doomed.kill('SIGKILL');
    }
  };
  await Promise.all(Array.from({ length: 12 }, (_, number) => lane(number)));

  const people = await stored(tenant.projectId);
  const islands = Map.groupBy(
    ids.filter((id) => Object.keys(expected.get(id) as object).length > 0 || leaderOf(id) !== id),
    leaderOf,
  );
  const mentioned = new Set(people.flatMap((person) => person.ids));
  for (const members of islands.values()) for (const id of members) expect(mentioned).toContain(id);
  expect(people.map((person) => person.ids).sort()).toEqual(
    [...islands.values()].map((members) => members.sort()).sort(),
  );
  for (const person of people) {
    expect(person.properties).toEqual(Object.assign({}, ...person.ids.map((id) => expected.get(id))));
  }
  expect(await orphans(tenant.projectId)).toEqual([]);
  const { rows } = await database.pool.query(
    'select count(*)::int, count(distinct uuid)::int as uuids from events where project_id = $1',
    [tenant.projectId],
  );
  expect(rows).toEqual([{ count: random.length, uuids: random.length }]);
});
