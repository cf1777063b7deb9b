import { beforeAll, expect, test } from '@jest/globals';
import type { Queryable } from '../../db/pool.ts';
import { createDefinitions } from '../../flags/cache/definitions.ts';
import { createSubjects, SubjectsUnavailableError } from '../../flags/reads/subjects.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { EVERYBODY, storeFlag, where } from './support.ts';

const api = apiForFile();
let greedy: Tenant;
let other: Tenant;
const email = { key: 'email', type: 'person', operator: 'icontains', value: '@acme' };

beforeAll(async () => {
  [greedy, other] = [await api.createTenant('Greedy'), await api.createTenant('Other')];
  for (const tenant of [greedy, other]) {
    await storeFlag(api.pool, tenant.projectId, { key: 'acme', filters: where(email) });
    const $set = { email: 'ann@acme.com' };
    const event = { api_key: tenant.projectToken, event: '$set', distinct_id: 'ann', properties: { $set } };
    expect((await api.request(null, 'POST', '/i/v0/e/', event)).statusCode).toBe(200);
  }
});

async function told(
  tenant: Tenant,
  body: object = {},
): Promise<Record<string, { reason: { code: string } }>> {
  const payload = { api_key: tenant.projectToken, distinct_id: 'ann', ...body };
  const answer = await api.request(null, 'POST', '/flags?v=2', payload);
  expect(answer.statusCode).toBe(200);
  return answer.json().flags;
}

test('ids that Postgres cannot store fail nothing, for nobody', async () => {
  for (let times = 0; times < 20; times += 1) {
    const [strange, groups, right] = await Promise.all([
      told(greedy, { distinct_id: 'a\0b' }),
      told(greedy, { groups: { company: 'a\0b' } }),
      told(other),
    ]);
    expect(strange.acme?.reason.code).toBe('no_condition_match');
    expect(groups.acme?.reason.code).toBe('condition_match');
    expect(right.acme?.reason.code).toBe('condition_match');
  }
});

test('what is asked while persons of a project are read joins the next statement', async () => {
  const sizes: number[] = [];
  let goOn: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const queryable = {
    async query(query: { values: unknown[][] }) {
      sizes.push(query.values[0]?.length ?? 0);
      await held;
      return (api.pool.query as (...all: unknown[]) => unknown)(query);
    },
  } as unknown as Queryable;
  const subjects = createSubjects(queryable);
  const { projectId } = other;
  const asked: Promise<unknown>[] = [];
  const ask = async (count: number) => {
    for (let n = 0; n < count; n += 1)
      asked.push(subjects.person({ projectId, distinctId: 'ann', names: '["email"]' }));
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  await ask(4);
  for (let n = 0; n < 10; n += 1) await ask(1);
  expect(sizes).toEqual([4]);
  goOn();
  for (const one of await Promise.all(asked)) expect(one).toEqual({ email: 'ann@acme.com' });
  expect(sizes).toEqual([4, 10]);
});

test('a project whose persons are read slowly takes no turns from another, and only its own breaker opens', async () => {
  let slow = 0;
  let ended = 0;
  let goOn: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  // The database as it is, and for one project it does not answer before the end.
  const queryable = {
    async query(query: { values: unknown[][] }) {
      if (query.values[0]?.includes(greedy.projectId)) {
        slow += 1;
        await held;
        ended += 1;
      }
      return (api.pool.query as (...all: unknown[]) => unknown)(query);
    },
  } as unknown as Queryable;
  const subjects = createSubjects(queryable, { patience: 5_000 });
  const ask = ({ projectId }: Tenant) =>
    subjects.person({ projectId, distinctId: 'ann', names: '["email"]' }).catch((error) => error);
  const askGroup = ({ projectId }: Tenant) =>
    subjects.group({ projectId, index: 0, key: 'acme', names: '["plan"]' }).catch((error) => error);
  // Persons and groups are read by statements of their own.
  const flood = Array.from({ length: 1_000 }, (_, n) => (n % 2 ? ask(greedy) : askGroup(greedy)));
  for (let times = 0; times < 200; times += 1) expect(await ask(other)).toEqual({ email: 'ann@acme.com' });
  for (const answer of await Promise.all(flood)) expect(answer).toBeInstanceOf(SubjectsUnavailableError);
  // Nobody waits for it now, and the other one is answered still.
  expect(await ask(greedy)).toBeInstanceOf(SubjectsUnavailableError);
  expect(await ask(other)).toEqual({ email: 'ann@acme.com' });
  goOn();
  // What waited for its turn is read in vain, and leaves nothing behind.
  await eventually(async () => ended === slow && ended >= 2);
});

test('monstrous definitions of one project are prepared between the requests of another', async () => {
  const properties = Array.from({ length: 20 }, (_, index) => ({
    ...{ key: `p${index}`, type: 'person', operator: 'regex' },
    value: `^(a|b|c){1,5}${index}[x-z]+$`,
  }));
  const groups = Array.from({ length: 20 }, () => ({ properties, rollout_percentage: 50 }));
  await api.pool.query(
    `insert into feature_flags (project_id, key, filters)
     select $1, 'flag-' || n, $2 from generate_series(1, 300) n`,
    [greedy.projectId, JSON.stringify({ groups })],
  );
  await storeFlag(api.pool, other.projectId, { key: 'plain', filters: EVERYBODY });
  await eventually(async () => (await told(other)).plain !== undefined);
  let isReady = false;
  const first = eventually(async () => 'flag-300' in (await told(greedy, { flag_keys: ['flag-300'] }))).then(
    () => {
      isReady = true;
    },
  );
  let answered = 0;
  while (!isReady) {
    expect((await told(other)).plain?.reason.code).toBe('condition_match');
    answered += 1;
  }
  await first;
  expect(answered).toBeGreaterThan(5);
});

test('one flag with thousands of patterns is prepared in many turns of the event loop', async () => {
  const properties = Array.from({ length: 4_000 }, (_, index) => ({
    ...{ key: `p${index}`, type: 'person', operator: 'regex' },
    value: `^(a|b|c){1,5}${index}[x-z]+$`,
  }));
  const definitions = createDefinitions({
    listener: { subscribe: () => () => undefined, isListening: () => true },
    logger: { warn: () => undefined },
    readFlags: async () => ({
      project: {
        ...{ organization_id: '', timezone: 'UTC', flag_requests_per_month: null },
        ...{ group_types: [], overrides: [] },
      },
      stamps: [{ id: 1, stamp: '1' }],
      changed: [
        {
          ...{ id: 1, stamp: '1', key: 'one', name: '', version: 1, active: true, tags: [] },
          ...{ ensure_experience_continuity: false, is_remote_configuration: false },
          ...{
            has_encrypted_payloads: false,
            evaluation_runtime: 'all',
            bucketing_identifier: 'distinct_id',
          },
          ...{ evaluation_contexts: [], filters: JSON.stringify({ groups: [{ properties }] }) },
        },
      ],
    }),
    readCohorts: async () => [],
  });
  let turns = 0;
  const count = () => {
    turns += 1;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);
  const project = await definitions.of(1);
  clearImmediate(counting);
  expect(project?.set.flags[0]?.conditions[0]?.tests).toHaveLength(4_000);
  // Without pauses between the patterns, there are three or four.
  expect(turns).toBeGreaterThan(10);
  await definitions.close();
});
