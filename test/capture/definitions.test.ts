import { spawn } from 'node:child_process';
import path from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import type { CapturedEvent } from '../../capture/captured-event.ts';
import { createDefinitions, type Definitions } from '../../capture/definitions/definitions.ts';
import { createIngest } from '../../capture/ingest.ts';
import { MOST_DEFINITIONS } from '../../db/definitions.ts';
import { deleteProjectRows } from '../../db/project-data.ts';
import { PRODUCTS } from '../../products.ts';
import { projectTables } from '../../tenancy/product.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { capturedEvent } from './support.ts';

const api = apiForFile();
let serial = 0;
const newTenant = () => api.createTenant(`Tenant ${serial++}`);
const NEVER = 3_600_000;

interface Definition {
  id: string;
  name: string;
  property_type: string | null;
  is_numerical: boolean;
  type: string;
  group_type_index: number | null;
  is_seen_on_filtered_events: boolean | null;
  created_at: string;
  last_seen_at: string;
}
async function list(tenant: Tenant, path: string): Promise<Definition[]> {
  const answer = await api.request(tenant, 'GET', `/api/projects/${tenant.projectId}/${path}`);
  expect({ status: answer.statusCode, ...(answer.statusCode !== 200 && answer.json()) }).toEqual({
    status: 200,
  });
  return answer.json().results;
}
const names = (found: Definition[]) => found.map(({ name }) => name);

async function send(tenant: Tenant, ...batch: object[]): Promise<void> {
  const answer = await api.request(null, 'POST', '/batch/', { api_key: tenant.projectToken, batch });
  expect(answer.statusCode).toBe(200);
}

/** What is in the table, whoever knows it. */
async function stored(tenant: Tenant, kind = 'event_property') {
  const { rows } = await api.pool.query<{ name: string; created_at: string; last_seen_at: string }>(
    'select name, created_at, last_seen_at from definitions where project_id = $1 and kind = $2 order by name',
    [tenant.projectId, kind],
  );
  return rows;
}
const storedNames = async (tenant: Tenant, kind?: string) =>
  (await stored(tenant, kind)).map((row) => row.name);

/** Moves everything that a project has into the past. */
const age = (tenant: Tenant, span: string, isOnce = true) =>
  api.pool.query(
    `update definitions set last_seen_at = last_seen_at - $2::interval,
       created_at = last_seen_at - $2::interval - case when $3 then '0' else '2 hours' end::interval
     where project_id = $1`,
    [tenant.projectId, span, isOnce],
  );

/** Captures in a process of its own, as far as what is known of names goes. */
async function inOtherProcess<T>(
  work: (
    capture: (tenant: Tenant, properties: object, event?: string) => Promise<unknown>,
    own: Definitions,
  ) => Promise<T>,
  options: { flushEvery?: number; mostBytes?: number } = {},
): Promise<T> {
  const own = createDefinitions({ pool: api.pool, flushEvery: NEVER, ...options });
  const ingest = createIngest({ pool: api.pool, names: own });
  const capture = (tenant: Tenant, properties: object, event = 'used') =>
    ingest.submit({ projectId: tenant.projectId, events: [eventWith(properties, event)] });
  try {
    return await work(capture, own);
  } finally {
    await ingest.close();
  }
}
const eventWith = (properties: object, event = 'used'): CapturedEvent =>
  capturedEvent({
    event,
    properties: { ...properties, $process_person_profile: false },
    received_at: Date.now(),
  });

describe('names that were captured', () => {
  let anna: Tenant;
  beforeAll(async () => {
    anna = await newTenant();
    await send(
      anna,
      {
        event: 'signed up',
        distinct_id: 'ada',
        properties: {
          ...{
            plan: 'paid',
            seats: 3,
            paid: true,
            at: '2026-01-31',
            tags: ['a'],
            utm_source: 7,
            $feature_x: 1,
          },
          ...{ $set: { email: 'ada@example.com', age: 36 }, $set_once: { first_seen: '2026-01-31' } },
          ...{ [`${'x'.repeat(201)}`]: 1, '$feature/beta': true, distinct_id: 'ada' },
        },
      },
      { event: '$pageview', distinct_id: 'ada', properties: { tags: 'a', $current_url: 'https://x.test' } },
      { event: 'ü'.repeat(101), distinct_id: 'ada', properties: { of_long_name: 1 } },
      {
        event: '$groupidentify',
        distinct_id: 'ada',
        properties: { $group_type: 'company', $group_key: 'acme', $group_set: { size: 10, name: 'Acme' } },
      },
    );
  });

  test('are listed with the types of their values', async () => {
    const found = await list(anna, 'property_definitions/');
    const types = Object.fromEntries(found.map((one) => [one.name, one.property_type]));
    expect(types).toEqual({
      ...{ plan: 'String', seats: 'Numeric', paid: 'Boolean', at: 'DateTime', utm_source: 'String' },
      // The first value that has a type decides.
      ...{ tags: 'String', $feature_x: 'Numeric', '$feature/beta': 'String', $current_url: 'String' },
      ...{ $ip: 'String', of_long_name: 'Numeric' },
    });
    expect(names(found)).toEqual([...Object.keys(types)].sort());
    expect(found.find(({ name }) => name === 'seats')).toMatchObject({
      ...{ is_numerical: true, type: 'event', group_type_index: null, tags: [] },
    });
  });

  test('are those of events, persons and groups', async () => {
    expect(names(await list(anna, 'event_definitions/?ordering=name'))).toEqual([
      '$groupidentify',
      '$pageview',
      'signed up',
    ]);
    const ofPersons = await list(anna, 'property_definitions/?type=person');
    expect(ofPersons.map((one) => [one.name, one.property_type])).toEqual([
      ['age', 'Numeric'],
      ['email', 'String'],
      ['first_seen', 'DateTime'],
    ]);
    const ofGroups = await list(anna, 'property_definitions/?type=group&group_type_index=0');
    expect(ofGroups.map((one) => [one.name, one.property_type, one.group_type_index])).toEqual([
      ['name', 'String', 0],
      ['size', 'Numeric', 0],
    ]);
    expect(await list(anna, 'property_definitions/?type=group&group_type_index=1')).toEqual([]);
  });

  test('are filtered', async () => {
    const properties = async (query: string) => names(await list(anna, `property_definitions/?${query}`));
    expect(await properties('search=P%20a')).toEqual(['paid', 'plan']);
    expect(await properties('search=%25')).toEqual([]);
    expect(await properties('properties=plan,distinct_id,none')).toEqual(['distinct_id', 'plan']);
    expect(await properties('is_numerical=true')).toEqual(['$feature_x', 'of_long_name', 'seats']);
    expect(await properties('is_feature_flag=true')).toEqual(['$feature/beta']);
    expect(await properties('is_feature_flag=false&search=feature')).toEqual(['$feature_x']);
    const excluded = encodeURIComponent('["plan","paid"]');
    expect(await properties(`excluded_properties=${excluded}&search=p`)).toEqual(['$ip']);
    expect(await properties('limit=2&offset=1')).toEqual(['$feature/beta', '$feature_x']);
    expect(await properties('exclude_core_properties=true&exclude_hidden=true')).toEqual([
      ...['at', 'of_long_name', 'paid', 'plan', 'seats', 'tags'],
    ]);
    const events = async (query: string) =>
      names(await list(anna, `event_definitions/?ordering=name&${query}`));
    expect(await events('event_type=event_custom')).toEqual(['signed up']);
    expect(await events('event_type=event_posthog')).toEqual(['$groupidentify', '$pageview']);
    expect(await events('search=SIGN')).toEqual(['signed up']);
  });

  test('are marked, and filtered, by the events that have them', async () => {
    const of = encodeURIComponent('["$pageview","none"]');
    const found = await list(anna, `property_definitions/?event_names=${of}&exclude_core_properties=true`);
    expect(found.map((one) => [one.name, one.is_seen_on_filtered_events])).toEqual([
      ...[
        ['at', false],
        ['of_long_name', false],
        ['paid', false],
        ['plan', false],
        ['seats', false],
      ],
      ['tags', true],
    ]);
    // As PostHog's own tools ask.
    const query = `event_names=${of}&filter_by_event_names=true&exclude_hidden=true&is_feature_flag=false&type=event`;
    const shown = await list(anna, `property_definitions/?${query}`);
    expect(names(shown)).toEqual(['$current_url', '$ip', 'tags']);
    expect(shown.every((one) => one.is_seen_on_filtered_events)).toBe(true);
    expect(names(await list(anna, `property_definitions/?${query}&properties=plan,tags`))).toEqual(['tags']);
    const others = encodeURIComponent('["none"]');
    expect(
      await list(anna, `property_definitions/?event_names=${others}&filter_by_event_names=True`),
    ).toEqual([]);
    const all = await list(anna, 'property_definitions/?filter_by_event_names=true');
    expect(all.every((one) => one.is_seen_on_filtered_events === null)).toBe(true);
  });

  test.each([
    ['property_definitions/?type=session', 'type'],
    ['property_definitions/?type=group', 'group_type_index'],
    ['property_definitions/?group_type_index=1', 'group_type_index'],
    ['property_definitions/?type=group&group_type_index=5', 'group_type_index'],
    ['property_definitions/?excluded_properties=plan', 'excluded_properties'],
    ['property_definitions/?event_names=plan', 'event_names'],
    ['property_definitions/?filter_by_event_names=yes', 'filter_by_event_names'],
    ['property_definitions/?serach=plan', 'serach'],
    ['event_definitions/?ordering=id', 'ordering'],
  ])('%s is refused', async (path, attr) => {
    const answer = await api.request(anna, 'GET', `/api/projects/${anna.projectId}/${path}`);
    expect(answer.statusCode).toBe(400);
    expect(answer.json()).toMatchObject({ type: 'validation_error', attr });
  });

  test('are retrieved one by one, by nobody but their project', async () => {
    const otto = await newTenant();
    for (const path of ['event_definitions/', 'property_definitions/']) {
      const [first] = await list(anna, path);
      const url = (tenant: Tenant) => `/api/projects/${tenant.projectId}/${path}${first?.id}/`;
      expect((await api.request(anna, 'GET', url(anna))).json()).toEqual(first);
      expect((await api.request(otto, 'GET', url(otto))).statusCode).toBe(404);
      expect((await api.request(otto, 'GET', url(anna))).statusCode).toBe(404);
      const other = path === 'event_definitions/' ? 'property_definitions/' : 'event_definitions/';
      const wrong = `/api/projects/${anna.projectId}/${other}${first?.id}/`;
      expect((await api.request(anna, 'GET', wrong)).statusCode).toBe(404);
      expect(await list(otto, path)).toEqual([]);
    }
  });
});

test('a large body shows its names on the thread that parses it', async () => {
  const tenant = await newTenant();
  const batch = Array.from({ length: 3_000 }, (_, index) => ({
    ...{ event: index === 2_999 ? 'last' : 'imported', distinct_id: 'ada' },
    properties: { filler: 'x'.repeat(200), price: 1, ...(index === 2_999 && { rare: true }) },
  }));
  await send(tenant, ...batch);
  expect(names(await list(tenant, 'event_definitions/?ordering=name'))).toEqual(['imported', 'last']);
  const found = await list(tenant, 'property_definitions/');
  expect(found.map((one) => [one.name, one.property_type])).toEqual([
    ['$ip', 'String'],
    ['filler', 'String'],
    ['price', 'Numeric'],
    ['rare', 'Boolean'],
  ]);
});

describe('the last sight', () => {
  test('is written once an hour, whichever process sees the name', async () => {
    const tenant = await newTenant();
    const versions = async () =>
      (
        await api.pool.query('select xmin::text, name from definitions where project_id = $1 order by name', [
          tenant.projectId,
        ])
      ).rows;
    for (let process = 0; process < 3; process += 1) {
      await inOtherProcess(async (capture, own) => {
        for (let event = 0; event < 3; event += 1) {
          await capture(tenant, { plan: 'paid' });
          await own.flush(tenant.projectId);
        }
      });
      if (process === 0) expect(names(await list(tenant, 'property_definitions/'))).toContain('plan');
    }
    const before = await versions();
    expect(new Set(before.map((row) => row.xmin)).size).toBe(1);
    await age(tenant, '61 minutes');
    const [old] = await stored(tenant, 'event');
    await inOtherProcess(async (capture, own) => {
      await capture(tenant, { plan: 'paid' });
      await own.flush(tenant.projectId);
    });
    const [renewed] = await stored(tenant, 'event');
    expect(renewed?.created_at).toBe(old?.created_at);
    expect(Date.parse(renewed?.last_seen_at as string)).toBeGreaterThan(
      Date.parse(old?.last_seen_at as string),
    );
  });

  test('a type that nobody knew is learnt from a later value', async () => {
    const tenant = await newTenant();
    for (const plan of [null, 'paid', 3]) {
      await inOtherProcess(async (capture, own) => {
        await capture(tenant, { plan });
        await own.flush(tenant.projectId);
      });
    }
    expect((await list(tenant, 'property_definitions/?properties=plan'))[0]).toMatchObject({
      property_type: 'String',
    });
  });
});

describe('a flood of names', () => {
  const FLOOD = 200_000;
  const OF_ONE = 1_000;

  test('fills the table and no more, and takes no place of names that are in use', async () => {
    const [tenant, other] = [await newTenant(), await newTenant()];
    await inOtherProcess(async (capture, own) => {
      await capture(tenant, { plan: 'paid', seats: 3 });
      await own.flush(tenant.projectId);
      // Seen yesterday, today, and within the last hour.
      await age(tenant, '0', false);

      for (let at = 0; at < FLOOD; at += OF_ONE) {
        const some = Array.from({ length: OF_ONE }, (_, index) => [`flood ${at + index}`, 1]);
        await capture(tenant, Object.fromEntries(some), `flood ${at % 7}`);
        await own.flush(tenant.projectId);
      }
      expect(await stored(tenant)).toHaveLength(MOST_DEFINITIONS.event_property);
      expect(await storedNames(tenant)).toEqual(expect.arrayContaining(['plan', 'seats']));

      // Nobody else notices.
      await capture(other, { fine: 1 });
      await own.flush(other.projectId);
      expect(await storedNames(other)).toEqual(['$process_person_profile', 'fine']);
    });

    // Within the hour nothing gives up its place; after it, what was seen once does.
    const addAnother = (name: string) =>
      inOtherProcess(async (capture, own) => {
        await capture(tenant, { [name]: 1 });
        await own.flush(tenant.projectId);
        return (await storedNames(tenant)).includes(name);
      });
    expect(await addAnother('early')).toBe(false);
    await api.pool.query(
      `update definitions set created_at = created_at - interval '3 hours', last_seen_at = last_seen_at - interval '3 hours'
       where project_id = $1`,
      [tenant.projectId],
    );
    expect(await addAnother('late')).toBe(true);
    const left = await storedNames(tenant);
    expect(left).toHaveLength(MOST_DEFINITIONS.event_property);
    expect(left).toEqual(expect.arrayContaining(['plan', 'seats', 'late']));

    // What was in use, and is no more, has its place for a month.
    await age(tenant, '29 days', false);
    expect(await addAnother('later')).toBe(false);
    await age(tenant, '2 days', false);
    expect(await addAnother('last')).toBe(true);
  });

  test('of events ends likewise', async () => {
    const tenant = await newTenant();
    await inOtherProcess(async (capture, own) => {
      const ingest = createIngest({ pool: api.pool, names: own });
      await capture(tenant, {}, 'in use');
      for (let at = 0; at < 5_000; at += 250) {
        await ingest.submit({
          projectId: tenant.projectId,
          events: Array.from({ length: 250 }, (_, index) => eventWith({}, `flood ${at + index}`)),
        });
        await own.flush(tenant.projectId);
      }
      await ingest.close();
    });
    const found = await storedNames(tenant, 'event');
    expect(found).toHaveLength(MOST_DEFINITIONS.event);
    expect(found).toContain('in use');
  });

  test('takes little memory, although the quiet projects are forgotten for it', async () => {
    const [quiet, loud] = [await newTenant(), await newTenant()];
    await inOtherProcess(
      async (capture, own) => {
        await capture(quiet, { plan: 1 });
        await own.flush(quiet.projectId);
        for (let at = 0; at < 2_000; at += 500) {
          const some = Array.from({ length: 500 }, (_, index) => [`name ${at + index}`, 1]);
          await capture(loud, Object.fromEntries(some));
          await own.flush(loud.projectId);
        }
        expect(own.bytes()).toBeLessThanOrEqual(20_000);
        // What is forgotten is not lost.
        await capture(quiet, { plan: 1, more: 1 });
        await own.flush(quiet.projectId);
      },
      { mostBytes: 20_000 },
    );
    expect(await storedNames(quiet)).toEqual(['$process_person_profile', 'more', 'plan']);
  });
});

describe('what is not written yet', () => {
  test('is written by itself soon', async () => {
    const tenant = await newTenant();
    await inOtherProcess((capture) => capture(tenant, { plan: 1 }), { flushEvery: 10 });
    await eventually(async () => (await storedNames(tenant)).includes('plan'));
  });

  test('is lost with its process, and found when it comes again', async () => {
    const tenant = await newTenant();
    await inOtherProcess((capture) => capture(tenant, { plan: 1, once: 1 }));
    expect(await stored(tenant)).toEqual([]);
    await inOtherProcess(async (capture, own) => {
      await capture(tenant, { plan: 1 });
      await own.close();
    });
    expect(await storedNames(tenant)).toEqual(['$process_person_profile', 'plan']);
  });

  test('is all that a process loses that is killed in the middle', async () => {
    const tenant = await newTenant();
    const child = spawn(
      process.execPath,
      [
        path.join(import.meta.dirname, 'names-process.ts'),
        api.config.DATABASE_URL as string,
        String(tenant.projectId),
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    let stored = 0;
    child.stdout.on('data', (lines: Buffer) => {
      stored += lines.toString().split('\n').length - 1;
    });
    const ended = new Promise((resolve) => child.once('close', resolve));
    // It dies while it writes names, for at least the second time.
    await eventually(async () => (await storedNames(tenant)).length > 5);
    const written = await storedNames(tenant);
    await eventually(async () => (await storedNames(tenant)).length > written.length);
    child.kill('SIGKILL');
    await ended;

    const numbers = (await storedNames(tenant))
      .filter((name) => name.startsWith('property '))
      .map((name) => Number(name.split(' ')[1]))
      .sort((a, b) => a - b);
    // What was written is whole: only names of the end are missing. The last event may not have been acknowledged.
    expect(numbers.length).toBeLessThanOrEqual(stored + 1);
    expect(numbers[0]).toBe(0);
    expect(await storedNames(tenant)).toEqual(expect.arrayContaining([...written, 'always']));
    // Nothing stands in the way of the next process.
    await inOtherProcess(async (capture, own) => {
      await capture(tenant, { always: true, next: 1 });
      await own.close();
    });
    expect(await storedNames(tenant)).toContain('next');
  });

  test('is kept while the table cannot be written, and capture goes on', async () => {
    const tenant = await newTenant();
    await inOtherProcess(async (capture, own) => {
      await api.pool.query('alter table definitions rename to definitions_away');
      try {
        expect(await capture(tenant, { plan: 1 })).toMatchObject({ stored: 1 });
        await expect(own.flush(tenant.projectId)).rejects.toThrow('definitions');
      } finally {
        await api.pool.query('alter table definitions_away rename to definitions');
      }
      await own.flush(tenant.projectId);
      expect(await storedNames(tenant)).toContain('plan');
    });
  });
});

test('a project that is deleted takes its names along, and no process adds one', async () => {
  const tenant = await newTenant();
  await inOtherProcess(async (capture, own) => {
    await capture(tenant, { plan: 1 });
    await own.flush(tenant.projectId);
    const gone = await api.request(tenant, 'DELETE', `/api/projects/${tenant.projectId}/`);
    expect(gone.statusCode).toBe(204);
    for await (const _ of deleteProjectRows(api.pool, tenant.projectId, 1_000, projectTables(PRODUCTS)));
    expect(await stored(tenant)).toEqual([]);
    await capture(tenant, { late: 1 });
    await own.flush(tenant.projectId);
    expect(await stored(tenant)).toEqual([]);
  });
});
