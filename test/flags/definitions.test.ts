import type { IncomingMessage } from 'node:http';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { Admitted } from '../../api/flags/definition-answers.ts';
import { withoutCohorts } from '../../flags/expand-cohorts.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { EVERYBODY, storeCohort, storeFlag, where } from './support.ts';

const api = apiForFile();
let host: string;

beforeAll(async () => {
  host = await api.app.listen({ port: 0, host: '127.0.0.1' });
});

const ask = (key: string, path: string, headers: Record<string, string> = {}) =>
  fetch(host + path, { headers: { authorization: `Bearer ${key}`, ...headers } });
const keysOf = async (answer: Response) =>
  ((await answer.json()) as { flags: { key: string }[] }).flags.map((flag) => flag.key);
const asks = (id: number) =>
  where({ type: 'flag', key: String(id), operator: 'flag_evaluates_to', value: true });

describe('a request for definitions that is repeated', () => {
  test('gets the same, with what has changed meanwhile, until the key is refused', async () => {
    const anna = await api.createTenant('Anna');
    const bert = await api.createTenant('Bert');
    await storeFlag(api.pool, anna.projectId, { key: 'first', filters: EVERYBODY });
    const url = `/flags/definitions?token=${anna.projectToken}`;
    const answers = [await ask(anna.key, url), await ask(anna.key, url)];
    const etags = answers.map((one) => one.headers.get('etag'));
    expect(etags[0]).toMatch(/^W\/"/);
    expect(etags[1]).toBe(etags[0]);
    expect(await Promise.all(answers.map(keysOf))).toEqual([['first'], ['first']]);
    const [etag] = etags as [string];
    const known = { 'if-none-match': etag };
    expect((await ask(anna.key, url, known)).status).toBe(304);
    // Clients and proxies write the tag back in other ways.
    const strong = etag.slice(2);
    for (const written of [strong, strong.slice(1, -1), `"x", ${strong}`]) {
      expect((await ask(anna.key, url, { 'if-none-match': written })).status).toBe(304);
    }
    expect((await ask(anna.key, url, { 'if-none-match': '"x"' })).status).toBe(200);
    // What one key may read is no other one's, whatever was asked before.
    expect((await ask(bert.key, url)).status).toBe(403);
    expect((await ask('phx_nobody', url)).status).toBe(401);
    expect((await fetch(host + url)).status).toBe(401);
    await storeFlag(api.pool, anna.projectId, { key: 'second', filters: EVERYBODY });
    await eventually(async () => (await ask(anna.key, url, known)).status === 200);
    expect(await keysOf(await ask(anna.key, url))).toEqual(['first', 'second']);
    await api.pool.query('delete from personal_api_keys where id = $1', [anna.keyId]);
    await eventually(async () => (await ask(anna.key, url)).status === 401);
  });

  test('is asked anew if only the current project says what it means', async () => {
    const anna = await api.createTenant('Moving');
    await storeFlag(api.pool, anna.projectId, { key: 'here', filters: EVERYBODY });
    const made = await api.request(anna, 'POST', `/api/organizations/${anna.organizationId}/projects/`, {
      name: 'There',
    });
    expect(made.statusCode).toBe(201);
    await storeFlag(api.pool, made.json().id, { key: 'there', filters: EVERYBODY });
    const current = (id: number) =>
      api.pool.query('update users set current_project_id = $2 where uuid = $1', [anna.userUuid, id]);
    await current(anna.projectId);
    expect(await keysOf(await ask(anna.key, '/flags/definitions'))).toEqual(['here']);
    await current(made.json().id);
    expect(await keysOf(await ask(anna.key, '/flags/definitions'))).toEqual(['there']);
  });

  test('counts in the quota each time', async () => {
    const anna = await api.createTenant('Quota');
    await storeFlag(api.pool, anna.projectId, { key: 'one', filters: EVERYBODY });
    await api.pool.query('update organizations set flag_requests_per_month = 25 where id = $1', [
      anna.organizationId,
    ]);
    const url = `/flags/definitions?token=${anna.projectToken}`;
    const statuses: number[] = [];
    for (let n = 0; n < 4; n += 1) statuses.push((await ask(anna.key, url)).status);
    expect(statuses).toEqual([200, 200, 402, 402]);
  });

  test('is admitted for some seconds, by its key and its whole path', () => {
    let now = 0;
    const admitted = new Admitted(5_000, () => now);
    const request = (url: string, authorization?: string) =>
      ({ url, headers: { ...(authorization === undefined ? {} : { authorization }) } }) as IncomingMessage;
    admitted.note(request('/flags/definitions?token=a', 'Bearer k'), 7);
    now = 4_999;
    expect(admitted.has(request('/flags/definitions?token=a', 'Bearer k'))).toBe(true);
    expect(admitted.projectOf(request('/flags/definitions?token=a', 'Bearer k'))).toBe(7);
    for (const other of [
      request('/flags/definitions?token=b', 'Bearer k'),
      request('/flags/definitions?token=a', 'Bearer l'),
      request('/flags/definitions?token=a'),
    ]) {
      expect(admitted.has(other)).toBe(false);
      expect(() => admitted.projectOf(other)).toThrow();
    }
    now = 5_000;
    expect(admitted.has(request('/flags/definitions?token=a', 'Bearer k'))).toBe(false);
    const never = new Admitted(0, () => now);
    never.note(request('/x', 'Bearer k'), 7);
    expect(never.has(request('/x', 'Bearer k'))).toBe(false);
    admitted.note(request(`/${'x'.repeat(600)}`, 'Bearer k'), 7);
    expect(admitted.has(request(`/${'x'.repeat(600)}`, 'Bearer k'))).toBe(false);
  });
});

describe('the body with definitions', () => {
  let anna: Tenant;
  beforeAll(async () => {
    anna = await api.createTenant('Bodies');
  });
  interface Body {
    flags: { key: string; filters: { groups: { properties: Record<string, unknown>[] }[] } }[];
  }
  const body = async () => {
    const url = `/api/projects/${anna.projectId}/feature_flags/local_evaluation/`;
    return (await api.request(anna, 'GET', url)).json() as Body;
  };

  test('follows a flag that others ask about when its name changes', async () => {
    const base = await storeFlag(api.pool, anna.projectId, { key: 'base', filters: EVERYBODY });
    await storeFlag(api.pool, anna.projectId, { key: 'child', filters: asks(base) });
    const chain = async () =>
      (await body()).flags.find((one) => one.key === 'child')?.filters.groups[0]?.properties[0];
    expect(await chain()).toMatchObject({ key: 'base', dependency_chain: ['base'] });
    await api.pool.query('update feature_flags set key = $2, version = version + 1 where id = $1', [
      base,
      'root',
    ]);
    await eventually(async () => (await chain())?.key === 'root');
    expect(await chain()).toMatchObject({ key: 'root', dependency_chain: ['root'] });
  });

  test('lists long chains of flags up to a bound, and keeps the others', async () => {
    let last = await storeFlag(api.pool, anna.projectId, { key: 'chain-0', filters: EVERYBODY });
    for (let n = 1; n <= 600; n += 1) {
      last = await storeFlag(api.pool, anna.projectId, { key: `chain-${n}`, filters: asks(last) });
    }
    await eventually(async () => (await body()).flags.length === 603);
    const lengths = (await body()).flags
      .filter((one) => one.key.startsWith('chain-') && one.key !== 'chain-0')
      .map((one) => ((one.filters.groups[0]?.properties[0]?.dependency_chain ?? []) as string[]).length);
    expect(lengths.slice(0, 3)).toEqual([1, 2, 3]);
    expect(lengths.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(100_000);
    // Who has no chain asks the server.
    expect(lengths.at(-1)).toBe(0);
  });
});

describe('definitions for SDKs that know no cohorts', () => {
  const person = (key: string, value: string, more: object = {}) => ({ type: 'person', key, value, ...more });
  const of = (type: 'AND' | 'OR', ...values: unknown[]) => ({ type, values });
  const [a, b, c] = [person('a', '1'), person('b', '2'), person('c', '3')];
  const inCohort = (value: number, more: object = {}) => ({ type: 'cohort', key: 'id', value, ...more });
  const trees = new Map<number, unknown>([
    [1, of('OR', of('AND', a, b), c)],
    [2, of('AND', of('OR', a, b), of('OR', b, c))],
    [3, of('AND', of('OR', a), of('AND', b, c))],
    [4, of('OR', { ...a, negation: true })],
    [5, of('OR', inCohort(1))],
    [6, of('OR')],
    [7, of('OR', ...Array.from({ length: 101 }, () => a))],
  ]);
  const group = (properties: unknown[], more: object = {}) => ({
    properties,
    rollout_percentage: 20,
    ...more,
  });
  const written = (one: object) =>
    (withoutCohorts({ groups: [one], x: 1 }, (id) => trees.get(id)) as { groups: unknown[] }).groups;

  test.each<[cohort: number, conditions: unknown[][]]>([
    [1, [[a, b], [c]]],
    [3, [[a, b, c]]],
  ])('ask about what cohort %i asks about', (id, conditions) => {
    expect(written(group([inCohort(id)]))).toEqual(conditions.map((properties) => group(properties)));
    expect(written(group([inCohort(id, { operator: 'in' })]))).toHaveLength(conditions.length);
  });

  test.each([2, 4, 5, 6, 7, 8])('keep cohort %i, which cannot be written so', (id) => {
    expect(written(group([inCohort(id)]))).toEqual([group([inCohort(id)])]);
  });

  test.each([
    group([inCohort(1), a]),
    group([inCohort(1, { operator: 'not_in' })]),
    group([inCohort(1)], { variant: 'test' }),
    group([a]),
  ])('keep what says more: %j', (one) => expect(written(one)).toEqual([one]));

  test('are sent where the older path does not ask for cohorts, and follow them', async () => {
    const tenant = await api.createTenant('Older');
    const id = await storeCohort(api.pool, tenant.projectId, { name: 'a', properties: of('OR', a) });
    await storeFlag(api.pool, tenant.projectId, { key: 'of-cohort', filters: where(inCohort(id)) });
    const read = async (path: string) => {
      const answer = await ask(tenant.key, `${path}token=${tenant.projectToken}`);
      const { flags, cohorts } = (await answer.json()) as {
        flags: { filters: { groups: { properties: unknown[] }[] } }[];
        cohorts: Record<string, unknown>;
      };
      const properties = flags[0]?.filters.groups.flatMap((one) => one.properties);
      return { properties, cohorts, etag: answer.headers.get('etag') };
    };
    const older = '/api/feature_flag/local_evaluation/?';
    const whole = { properties: [inCohort(id)], cohorts: { [id]: of('OR', a) } };
    // Twice: the second answer is one that is remembered.
    for (let round = 0; round < 2; round += 1) {
      const plain = await read(older);
      expect(plain).toMatchObject({ properties: [a], cohorts: {} });
      const asked = await read(`${older}send_cohorts&`);
      expect(asked).toMatchObject(whole);
      expect(await read('/flags/definitions?')).toEqual(asked);
      expect(plain.etag).not.toBe(asked.etag);
    }
    await api.pool.query('update cohorts set filters = $2, version = version + 1 where id = $1', [
      id,
      JSON.stringify({ properties: of('OR', b) }),
    ]);
    await eventually(async () => JSON.stringify((await read(older)).properties) === JSON.stringify([b]));
  });
});
