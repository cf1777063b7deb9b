import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { CapturedEvent } from '../../capture/captured-event.ts';
import { createIngest, type Ingest } from '../../capture/ingest.ts';
import { limitPersonChanges } from '../../capture/parse/event.ts';
import { personId } from '../../db/person-ids.ts';
import { createPool, type Pool } from '../../db/pool.ts';
import { databaseForFile } from '../support/database.ts';
import { PATIENCE } from '../support/eventually.ts';
import { capturedEvent, carryAll } from './support.ts';

let pool: Pool;
let ingest: Ingest;
afterAll(async () => {
  await ingest?.close();
  await pool?.end();
});
const database = databaseForFile();
beforeAll(() => {
  pool = createPool({ url: database.url, size: 2, name: 'ingest' });
  ingest = createIngest({ pool, limits: { patience: PATIENCE } });
});

const BEGIN = Date.UTC(2026, 0, 2, 3);
const MINUTE = 60_000;
let project = 100;
const nextProject = () => {
  project += 1;
  return project;
};

type Told = [event: string, distinctId: string, properties: Record<string, unknown>, minute?: number];

interface Case {
  name: string;
  events: Told[];
  persons?: { ids: string[]; identified: boolean; properties: object; created?: number }[];
  /** `person`: whose distinct_id the person's id follows from. */
  stored?: { person?: string; mode?: string; properties?: object; groups?: (string | null)[] }[];
  types?: string[];
  groups?: { index: number; key: string; properties: object }[];
  warnings?: Record<string, number>;
}

const cases: Case[] = JSON.parse(readFileSync(path.join(import.meta.dirname, 'golden/persons.json'), 'utf8'));

function told([event, distinct_id, properties, minute = 0]: Told, index: number): CapturedEvent {
  const own = structuredClone(properties);
  limitPersonChanges(event, own);
  return capturedEvent({ index, event, distinct_id, properties: own, timestamp: BEGIN + minute * MINUTE });
}

async function persons(projectId: number) {
  const { rows } = await database.pool.query(
    `select p.*, array_agg(d.distinct_id order by d.distinct_id) as ids
     from persons p left join person_distinct_ids d on d.project_id = p.project_id and d.person_id = p.id
     where p.project_id = $1 group by p.project_id, p.id order by min(d.distinct_id)`,
    [projectId],
  );
  return rows;
}

async function stored(projectId: number) {
  const { rows } = await database.pool.query(
    'select * from events where project_id = $1 order by inserted_at, ctid',
    [projectId],
  );
  return rows;
}

const groupsOf = (row: Record<string, unknown>) => [0, 1, 2, 3, 4].map((index) => row[`group_${index}`]);
const filled = (groups: (string | null)[]) => [0, 1, 2, 3, 4].map((index) => groups[index] ?? null);

async function expectCase(
  projectId: number,
  expected: Case,
  events: readonly CapturedEvent[],
  warnings: string[],
): Promise<void> {
  await carryAll(database.pool);
  const people = await persons(projectId);
  if (expected.persons) {
    expect(people.map(({ ids, is_identified, properties }) => ({ ids, is_identified, properties }))).toEqual(
      expected.persons.map(({ ids, identified, properties }) => ({
        ids,
        is_identified: identified,
        properties,
      })),
    );
    for (const [index, { created }] of expected.persons.entries()) {
      if (created !== undefined) expect(Date.parse(people[index]?.created_at)).toBe(BEGIN + created * MINUTE);
    }
  }
  const byUuid = new Map((await stored(projectId)).map((row) => [row.uuid, row]));
  const rows = events.map((event) => byUuid.get(event.uuid));
  expect(rows).not.toContain(undefined);
  for (const [index, row] of (expected.stored ?? []).entries()) {
    if (row.person !== undefined) {
      expect(rows[index].person_id).toBe(personId(projectId, row.person.replace('new ', '')));
    }
    if (row.mode !== undefined) expect(rows[index].person_mode).toBe(row.mode);
    if (row.properties !== undefined) expect(rows[index].person_properties).toEqual(row.properties);
    if (row.groups !== undefined) expect(groupsOf(rows[index])).toEqual(filled(row.groups));
  }
  const { rows: types } = await database.pool.query(
    'select group_type from group_types where project_id = $1 order by group_type_index',
    [projectId],
  );
  if (expected.types) expect(types.map((row) => row.group_type)).toEqual(expected.types);
  const { rows: groups } = await database.pool.query(
    `select group_type_index as index, group_key as key, properties from groups where project_id = $1
     order by 1, 2`,
    [projectId],
  );
  if (expected.groups) expect(groups).toEqual(expected.groups);
  const counted: Record<string, number> = {};
  for (const reason of warnings) counted[reason] = (counted[reason] ?? 0) + 1;
  expect(counted).toEqual(expected.warnings ?? {});
}

describe.each(cases)('$name', (expected) => {
  const events = () => expected.events.map(told);
  const reasons = (answer: Awaited<ReturnType<Ingest['submit']>>) =>
    (answer.notices ?? []).map((one) => one.reason);

  test('in one request', async () => {
    const projectId = nextProject();
    const all = events();
    const warnings = reasons(await ingest.submit({ projectId, events: all }));
    await expectCase(projectId, expected, all, warnings);
  });

  test('one after the other, alternating between two processes', async () => {
    const projectId = nextProject();
    // What they remember of persons is theirs alone, as it is in two processes.
    const other = createIngest({ pool });
    const warnings: string[] = [];
    const all = events();
    for (const [index, event] of all.entries()) {
      const one = index % 2 === 0 ? ingest : other;
      warnings.push(...reasons(await one.submit({ projectId, events: [event] })));
    }
    await other.close();
    await expectCase(projectId, expected, all, warnings);
  });
});

test('the id of a person follows from project and distinct_id, as published', () => {
  expect(personId(1, 'user-1')).toBe('6931a681-6e90-500d-8294-14582dcc2e3f');
});

test('a person whose properties would pass 512 KiB keeps what they were; the event is stored', async () => {
  const projectId = nextProject();
  const large = 'x'.repeat(300 * 1024);
  const send = (properties: Record<string, unknown>) =>
    ingest.submit({ projectId, events: [capturedEvent({ distinct_id: 'a', properties })] });
  await send({ $set: { one: large, small: 1 } });
  const { notices } = await send({ $set: { two: large, small: 2 } });
  expect(notices).toEqual([
    {
      index: 0,
      reason: 'person_properties_too_large',
      detail: { event: 'page viewed', distinct_id: 'a', limit_bytes: 524_288 },
    },
  ]);
  await send({ $unset: ['one'] });
  await send({ $set: { two: large } });
  const [person] = await persons(projectId);
  expect(person?.properties).toEqual({ small: 1, two: large });
  expect(await stored(projectId)).toHaveLength(4);
});

test('a group whose properties would pass 512 KiB keeps what they were, in one request and in two', async () => {
  const projectId = nextProject();
  const large = 'x'.repeat(300 * 1024);
  const update = (set: object) =>
    capturedEvent({
      event: '$groupidentify',
      properties: { $group_type: 'org', $group_key: 'acme', $group_set: set },
    });
  expect((await ingest.submit({ projectId, events: [update({ one: large })] })).notices).toBeUndefined();
  const second = await ingest.submit({ projectId, events: [update({ two: large })] });
  const both = await ingest.submit({ projectId, events: [update({ a: large }), update({ b: large })] });
  const reason = 'group_properties_too_large';
  expect([second.notices, both.notices]).toMatchObject([[{ reason, index: 0 }], [{ reason }]]);
  const { rows } = await database.pool.query('select properties from groups where project_id = $1', [
    projectId,
  ]);
  expect(rows).toEqual([{ properties: { one: large } }]);
});

test('types and keys of groups may have 400 characters, counted as people do', async () => {
  const projectId = nextProject();
  const [fits, tooLong] = ['😀'.repeat(400), '😀'.repeat(401)];
  const events = [
    capturedEvent({ properties: { $groups: { [fits]: fits } } }),
    capturedEvent({ properties: { $groups: { [tooLong]: 'k', org: tooLong } } }),
    capturedEvent({
      event: '$groupidentify',
      properties: { $group_type: 'org', $group_key: tooLong, $group_set: { x: 1 } },
    }),
    capturedEvent({
      event: '$groupidentify',
      properties: { $group_type: fits, $group_key: fits, $group_set: { x: 1 } },
    }),
  ];
  const { notices } = await ingest.submit({ projectId, events });
  expect(notices?.map((one) => one.reason).sort()).toEqual([
    'group_key_too_long',
    'group_key_too_long',
    'group_type_too_long',
  ]);
  const { rows } = await database.pool.query('select * from groups where project_id = $1', [projectId]);
  expect(rows).toMatchObject([{ group_type_index: 0, group_key: fits, properties: { x: 1 } }]);
  expect((await stored(projectId)).map((row) => row.group_0)).toEqual([fits, null, null, null]);
});

test('what changes nothing writes nothing: version and date of the person stay', async () => {
  const projectId = nextProject();
  const event = () =>
    capturedEvent({ distinct_id: 'a', properties: { $set: { a: { y: 1, bb: [2] } }, $browser: 'Chrome' } });
  await ingest.submit({ projectId, events: [event()] });
  const before = await persons(projectId);
  await ingest.submit({ projectId, events: [event(), event()] });
  const afresh = createIngest({ pool });
  await afresh.submit({ projectId, events: [event()] });
  await afresh.close();
  expect(await persons(projectId)).toEqual(before);
});

test('versions count up: of persons with each change, of distinct_ids when they go over', async () => {
  const projectId = nextProject();
  const submit = (event: string, distinct_id: string, properties: Record<string, unknown>) =>
    ingest.submit({ projectId, events: [capturedEvent({ event, distinct_id, properties })] });
  await submit('seen', 'anon', { $set: { a: 1 } });
  await submit('seen', 'user', { $set: { u: 1 } });
  await submit('$identify', 'user', { $anon_distinct_id: 'anon' });
  const { rows } = await database.pool.query(
    `select d.distinct_id, d.version, d.changed_at = p.changed_at as with_person, p.version as person_version
     from person_distinct_ids d join persons p on p.project_id = d.project_id and p.id = d.person_id
     where d.project_id = $1 order by 1`,
    [projectId],
  );
  expect(rows).toEqual([
    { distinct_id: 'anon', version: 1, with_person: true, person_version: 1 },
    { distinct_id: 'user', version: 0, with_person: false, person_version: 1 },
  ]);
});

test('changes of persons are stamped for the horizon as the events that made them', async () => {
  const projectId = nextProject();
  await ingest.submit({ projectId, events: [capturedEvent({ distinct_id: 'a' })] });
  const { rows } = await database.pool.query(
    `select count(*)::int from events e join persons p on p.project_id = e.project_id and p.id = e.person_id
       join person_distinct_ids d on d.project_id = p.project_id and d.person_id = p.id
     where e.project_id = $1 and p.changed_at = e.inserted_at and d.changed_at = e.inserted_at`,
    [projectId],
  );
  expect(rows).toEqual([{ count: 1 }]);
});

test('a distinct_id of a deleted person makes a new person, and its version goes on', async () => {
  const projectId = nextProject();
  const submit = (properties: Record<string, unknown>) =>
    ingest.submit({ projectId, events: [capturedEvent({ distinct_id: 'a', properties })] });
  await submit({ $set: { secret: 1 } });
  await database.pool.query(
    `with gone as (delete from person_distinct_ids where project_id = $1 returning *),
       person as (delete from persons where project_id = $1 returning *)
     insert into deleted_distinct_ids
     select gone.project_id, distinct_id, person_id, gone.version + 1, person.version + 1, created_at, now()
     from gone, person`,
    [projectId],
  );
  await submit({ $set: { other: 2 } });
  expect(await persons(projectId)).toMatchObject([{ ids: ['a'], version: 0, properties: { other: 2 } }]);
  const { rows } = await database.pool.query(
    `select version, (select count(*)::int from deleted_distinct_ids where project_id = $1) as deleted
     from person_distinct_ids where project_id = $1`,
    [projectId],
  );
  expect(rows).toEqual([{ version: 2, deleted: 0 }]);
});

test('a request of 20,000 people that nobody knew is stored, with a person for each', async () => {
  const projectId = nextProject();
  const events = Array.from({ length: 20_000 }, (_, index) =>
    capturedEvent({ index, distinct_id: `visitor ${index}`, properties: { $set: { index } } }),
  );
  expect(await ingest.submit({ projectId, events })).toEqual({ stored: 20_000, duplicates: 0 });
  const { rows } = await database.pool.query(
    `select count(*)::int, sum((properties ->> 'index')::int)::int as sum from persons where project_id = $1`,
    [projectId],
  );
  expect(rows).toEqual([{ count: 20_000, sum: (20_000 * 19_999) / 2 }]);
});
