import type { IncomingMessage } from 'node:http';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { Admitted } from '../../api/flags/definition-answers.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { EVERYBODY, storeFlag, where } from './support.ts';

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
