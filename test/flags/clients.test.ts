import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { PostHog as Oldest } from 'posthog-node-3';
import { PostHog as Older } from 'posthog-node-4';
import { PostHog } from 'posthog-node-5';
import { findPythonClient, runProgram } from '../capture/client-programs.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { EVERYBODY, storeCohort, storeFlag, where } from './support.ts';

const clients: { shutdown(): Promise<void> | void }[] = [];
// Before the API is closed: the clients send what they still have.
afterAll(async () => {
  await Promise.all(clients.map((one) => one.shutdown()));
});
const api = apiForFile();
let tenant: Tenant;
let host: string;

const VARIANTS = {
  variants: [
    { key: 'control', rollout_percentage: 50 },
    { key: 'test', rollout_percentage: 30 },
    { key: 'test2', rollout_percentage: 20 },
  ],
};
const PROPERTIES = {
  email: ['ann@acme.com', 'bob@example.com', 'ANN@ACME.ORG'],
  plan: ['free', 'pro', 'enterprise'],
  age: [17, 18, 42],
  version: ['1.2.3', '1.10.0', '2.0.0'],
};

/** Numbers that look random and are the same each time. */
function dice(seed: number): (most: number) => number {
  let state = seed;
  return (most) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * most);
  };
}

/** A condition of the kinds on which the clients and the server are meant to agree. */
function randomFilter(roll: (most: number) => number) {
  const value = <T>(list: readonly T[]) => list[roll(list.length)] as T;
  return value([
    { key: 'email', type: 'person', operator: 'icontains', value: value(['acme', 'example', '.ORG']) },
    { key: 'email', type: 'person', operator: 'regex', value: value(['^ann', 'com$', 'b+']) },
    {
      key: 'plan',
      type: 'person',
      operator: 'exact',
      value: [value(PROPERTIES.plan), value(PROPERTIES.plan)],
    },
    { key: 'plan', type: 'person', operator: 'is_not', value: value(PROPERTIES.plan) },
    {
      key: 'age',
      type: 'person',
      operator: value(['gt', 'gte', 'lt', 'lte']),
      value: value(['17', '18', '40']),
    },
    { key: 'plan', type: 'person', operator: 'is_set', value: 'is_set' },
  ]);
}

beforeAll(async () => {
  host = await api.app.listen({ port: 0, host: '127.0.0.1' });
  tenant = await api.createTenant('Clients');
  const roll = dice(7);
  const add = (key: string, filters: unknown) => storeFlag(api.pool, tenant.projectId, { key, filters });
  await add('new-checkout', { ...EVERYBODY, multivariate: VARIANTS, payloads: { test2: '{"a":[1]}' } });
  const base = await add('base', where({ key: 'plan', type: 'person', operator: 'exact', value: 'pro' }));
  await add('child', where({ type: 'flag', key: String(base), operator: 'flag_evaluates_to', value: true }));
  const cohort = await storeCohort(api.pool, tenant.projectId, {
    name: 'acme',
    properties: {
      type: 'OR',
      values: [
        { type: 'AND', values: [{ key: 'email', type: 'person', operator: 'icontains', value: 'acme' }] },
      ],
    },
  });
  await add('acme', where({ type: 'cohort', key: 'id', value: cohort, operator: 'in' }));
  for (let number = 0; number < 40; number += 1) {
    const groups = Array.from({ length: 1 + roll(3) }, () => ({
      properties: Array.from({ length: roll(3) }, () => randomFilter(roll)),
      rollout_percentage: [100, 50, 10, 0][roll(4)],
      variant: roll(4) === 0 ? 'test' : null,
    }));
    await add(`random-${number}`, { groups, multivariate: roll(2) === 0 ? VARIANTS : null });
  }
});
const user = (roll: (most: number) => number) => ({
  email: PROPERTIES.email[roll(3)] as string,
  plan: PROPERTIES.plan[roll(3)] as string,
  // The older clients take texts only.
  age: String(PROPERTIES.age[roll(3)]),
});

describe('posthog-node', () => {
  test('5 agrees with the server when it evaluates by itself, and gets 304 while nothing changes', async () => {
    const local = new PostHog(tenant.projectToken, { host, personalApiKey: tenant.key });
    const remote = new PostHog(tenant.projectToken, { host });
    clients.push(local, remote);
    await local.reloadFeatureFlags();
    const roll = dice(11);
    for (let number = 0; number < 100; number += 1) {
      const id = `user-${number}`;
      const personProperties = user(roll);
      const here = await local.getAllFlags(id, { personProperties, onlyEvaluateLocally: true });
      const there = await remote.getAllFlags(id, { personProperties });
      expect(Object.keys(there).length).toBe(44);
      expect({ id, ...here }).toEqual({ id, ...there });
    }
    expect(await remote.getFeatureFlagPayload('new-checkout', 'user-2')).toEqual({ a: [1] });
    const url = `${host}/flags/definitions?token=${tenant.projectToken}&send_cohorts`;
    const authorization = `Bearer ${tenant.key}`;
    const first = await fetch(url, { headers: { authorization } });
    const etag = first.headers.get('etag') as string;
    const second = await fetch(url, { headers: { authorization, 'if-none-match': etag } });
    expect([first.status, second.status, second.headers.get('etag')]).toEqual([200, 304, etag]);
  });

  test.each([
    ['4', Older],
    ['3', Oldest],
  ] as const)('%s gets the values, and evaluates by itself', async (_version, Client) => {
    const client = new Client(tenant.projectToken, { host, personalApiKey: tenant.key });
    const remote = new Client(tenant.projectToken, { host });
    clients.push(
      ...([client, remote] as { shutdown?(): Promise<void> }[]).map((one) => ({
        shutdown: () => one.shutdown?.(),
      })),
    );
    expect(await remote.getFeatureFlag('new-checkout', 'user-2')).toBe('test2');
    expect(await remote.getFeatureFlag('unknown', 'user-2')).toBeFalsy();
    const personProperties = { email: 'ann@acme.com', plan: 'pro' };
    expect(await remote.isFeatureEnabled('acme', 'user-2', { personProperties })).toBe(true);
    const options = { personProperties, onlyEvaluateLocally: true };
    expect(await client.getFeatureFlag('new-checkout', 'user-2', options)).toBe('test2');
    expect(await client.isFeatureEnabled('acme', 'user-2', options)).toBe(true);
  });
});

/** What a program prints as its result. */
const resultsIn = (output: string) =>
  [...output.matchAll(/^RESULT (.*)$/gm)].map(([, text]) => JSON.parse(text as string));

describe.each(['7.91.1', '3.25.0'])('posthog-python %s', (version) => {
  const { found, reason } = findPythonClient(version);
  if (found === undefined) process.stderr.write(`skipped: posthog-python ${version}: ${reason}\n`);
  (found === undefined ? test.skip : test)('gets the values, and evaluates by itself', async () => {
    const program = path.join(import.meta.dirname, 'client-programs/flags.py');
    const env = { PYTHONPATH: found as string, PYTHONDONTWRITEBYTECODE: '1' };
    const args = [program, host, tenant.projectToken, tenant.key];
    const { code, output } = await runProgram('python3', args, { env });
    expect(output).not.toMatch(/Traceback/);
    const values = { variant: 'test2', cohort: true, child: true, unknown: null };
    const [{ remote, local }] = resultsIn(output);
    expect(code).toBe(0);
    expect(remote).toMatchObject({ ...values, all: 44 });
    // Older versions know no flags that ask about flags, and ask the server for them.
    const child = version.startsWith('7') ? true : null;
    expect(local).toMatchObject({ ...values, child, all: expect.any(Number) });
    // Older versions leave the parsing of payloads to the application.
    for (const { payload } of [remote, local]) {
      expect(typeof payload === 'string' ? JSON.parse(payload) : payload).toEqual({ a: [1] });
    }
  });
});

describe.each([
  ['posthog-js', '1.434.18'],
  ['posthog-js-1-200', '1.200.2'],
])('%s %s', (name) => {
  test('has what the page was given, then what the server says, and asks again for who logs in', async () => {
    // Of its own: the page makes one person of who was there and who logs in.
    const own = await api.createTenant(name);
    const email = { key: 'email', type: 'person', operator: 'icontains', value: 'acme' };
    const filters = { ...EVERYBODY, multivariate: VARIANTS, payloads: { test2: '{"a":[1]}' } };
    await storeFlag(api.pool, own.projectId, { key: 'new-checkout', filters });
    await storeFlag(api.pool, own.projectId, { key: 'acme', filters: where(email) });
    const args = ['jsdom.mjs', name, host, own.projectToken, '../../flags/client-programs/flags.js'];
    const { code, output } = await runProgram(process.execPath, args);
    const results = resultsIn(output);
    expect([code, results]).toEqual([
      0,
      [
        expect.objectContaining({ step: 'bootstrap', keys: 2, isOn: true, boot: true }),
        expect.objectContaining({ step: 'loaded', variant: 'test2', payload: { a: [1] }, isOn: false }),
        expect.objectContaining({ step: 'known', variant: 'control', isOn: true }),
      ],
    ]);
  });
});

describe('definitions', () => {
  const read = (key: string | null, path: string) => api.request(key, 'GET', path);
  test('are for members with the scope, by the public key of the project', async () => {
    const other = await api.createTenant('Other');
    const narrow = await api.createKey(tenant, { scopes: ['batch_export:read'] });
    const bound = await api.createKey(tenant, { scopes: ['*'], scopedTeams: [other.projectId] });
    const { projectToken: token } = tenant;
    for (const path of ['/flags/definitions', '/flags/definitions/', '/api/feature_flag/local_evaluation']) {
      const url = `${path}?token=${token}`;
      const answer = await read(tenant.key, url);
      expect([path, answer.statusCode, answer.json().flags.length]).toEqual([path, 200, 44]);
      expect((await read(null, url)).statusCode).toBe(401);
      expect((await read('phx_wrong', url)).statusCode).toBe(401);
      expect((await read(other.key, url)).statusCode).toBe(403);
      expect((await read(narrow.value, url)).statusCode).toBe(403);
      expect((await read(bound.value, url)).statusCode).toBe(403);
      expect((await read(tenant.key, `${path}?token=phc_nobody`)).statusCode).toBe(401);
    }
    const own = await read(tenant.key, `/api/projects/${tenant.projectId}/feature_flags/local_evaluation/`);
    expect(own.json().flags.length).toBe(44);
    const foreign = `/api/projects/${tenant.projectId}/feature_flags/local_evaluation/`;
    expect((await read(other.key, foreign)).statusCode).toBe(404);
  });
});
