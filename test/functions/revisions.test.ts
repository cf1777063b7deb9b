import { beforeAll, describe, expect, test } from '@jest/globals';
import { SECRETS_OF } from '../../functions/reads/secrets.ts';
import { oldDeletedFunctions } from '../../functions/rows/forgetting.ts';
import { keepFunctionVersions } from '../../functions/runs/upkeep.ts';
import { PRODUCTS } from '../../products.ts';
import { open, parseKeyring } from '../../secrets/envelope.ts';
import { resealSecrets } from '../../tenancy/encryption-keys.ts';
import { sealedColumns } from '../../tenancy/product.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { type Drafting, drafting, EDITED, LIVE, OTHER, WEBHOOK } from './drafting.ts';

const api = apiForFile();
let anna: Tenant;
let functions: Drafting;

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  functions = drafting(api, anna);
});

const revisions = async (id: string, query = '') => {
  const { status, body } = await functions.ask('GET', `${id}/revisions/${query}`);
  expect(status).toBe(200);
  return body;
};
const versions = async (id: string) =>
  (await revisions(id)).results.map((one: { version: number }) => one.version);
const revision = async (id: string, version: number | string) =>
  functions.ask('GET', `${id}/revisions/${version}/`);
const restore = async (id: string, version: number | string, body?: object) =>
  functions.ask('POST', `${id}/revisions/${version}/restore/`, body);
const rotated = (value: string) => ({ inputs: { ...WEBHOOK.inputs, token: { value } } });

describe('revisions', () => {
  test('begin with the first change, which also keeps what was there before', async () => {
    const { id, updated_at } = await functions.create();
    expect(await revisions(id)).toEqual({ count: 0, next: null, previous: null, results: [] });
    await functions.edit(id, { hog: EDITED });
    expect(await revisions(id)).toEqual({
      ...{ count: 2, next: null, previous: null },
      results: [
        {
          version: 2,
          created_at: expect.any(String),
          created_by: expect.objectContaining({ id: anna.userId }),
        },
        { version: 1, created_at: updated_at, created_by: null },
      ],
    });
    expect((await revision(id, 1)).body.content.hog).toBe(LIVE);
    expect((await revision(id, 2)).body).toMatchObject({
      version: 2,
      content: {
        ...{ hog: EDITED, inputs_schema: [{ key: 'url' }, { key: 'token' }], filters: {} },
        inputs: { url: { value: 'https://example.com/live' }, token: { secret: true } },
        ...{ masking: null, mappings: null },
      },
    });
  });

  test('are made by no name, and by nothing that is sent again as it is', async () => {
    const { id } = await functions.create({ masking: { ttl: 60, hash: '{event.event}' } });
    await functions.edit(id, { name: 'Renamed', enabled: false });
    const { inputs, filters, masking, mappings } = await functions.get(id);
    const again = { ...WEBHOOK, ...{ filters, masking, mappings } };
    for (const change of [again, { inputs }, { inputs: WEBHOOK.inputs }]) await functions.edit(id, change);
    expect([await versions(id), (await functions.get(id)).version]).toEqual([[], 1]);
    await functions.edit(id, { filters: { events: [{ id: 'paid' }] } });
    expect(await versions(id)).toEqual([2, 1]);
  });

  test('are made by another value of a secret, and by a draft that is published', async () => {
    const { id } = await functions.create();
    await functions.edit(id, rotated('rotated-token'));
    await functions.stage(id, { hog: EDITED });
    expect(await versions(id)).toEqual([2, 1]);
    await functions.publish(id);
    expect(await versions(id)).toEqual([3, 2, 1]);
    expect((await revision(id, 2)).body.content.hog).toBe(LIVE);
  });

  test('come in pages', async () => {
    const { id } = await functions.create();
    for (const hog of [EDITED, OTHER]) await functions.edit(id, { hog });
    const page = await revisions(id, '?limit=2');
    expect([page.count, page.results.map((one: { version: number }) => one.version)]).toEqual([3, [3, 2]]);
    const next = await api.request(anna, 'GET', new URL(page.next).pathname + new URL(page.next).search);
    expect(next.json().results).toMatchObject([{ version: 1 }]);
  });

  test.each(['99', '0', 'x', '1.5', '9999999999'])('do not have the version %s', async (version) => {
    const { id } = await functions.create();
    await functions.edit(id, { hog: EDITED });
    expect((await revision(id, version)).status).toBe(404);
    expect((await restore(id, version)).status).toBe(404);
  });

  test('are the newest 100', async () => {
    const { id } = await functions.create({ enabled: false });
    await functions.edit(id, { hog: EDITED });
    await api.pool.query(
      `insert into function_revisions (project_id, function_id, version, content, secret_keys)
       select project_id, function_id, n, content, secret_keys from function_revisions, generate_series(3, 120) n
       where function_id = $1 and version = 2`,
      [id],
    );
    await api.pool.query('update functions set version = 120 where id = $1', [id]);
    await functions.edit(id, { hog: OTHER });
    const { count, results } = await revisions(id, '?limit=1000');
    expect([count, results[0].version, results.at(-1).version]).toEqual([100, 121, 22]);
  });

  test('hide secrets, and keep them sealed', async () => {
    const { id } = await functions.create({
      mappings: [
        {
          name: 'm',
          inputs_schema: [{ key: 'key', type: 'string', secret: true }],
          inputs: { key: { value: 'mapped-token' } },
        },
      ],
    });
    await functions.edit(id, rotated('rotated-token'));
    const { rows } = await api.pool.query('select * from function_revisions where function_id = $1', [id]);
    const shown = [await revisions(id), await revision(id, 1), await revision(id, 2)];
    expect(shown[1]?.body.content).toMatchObject({
      inputs: { token: { secret: true } },
      mappings: [{ inputs: { key: { secret: true } } }],
    });
    expect(rows.map((row) => row.secrets)).toEqual([expect.stringMatching(/^slc1\./), expect.any(String)]);
    expect(JSON.stringify([rows, shown])).not.toMatch(/(live|rotated|mapped)-token/);
  });
});

describe('a revision that is restored', () => {
  test('becomes the draft, and runs when it is published', async () => {
    const { id } = await functions.create();
    await functions.edit(id, { hog: EDITED });
    const { status, body } = await restore(id, 1);
    expect([status, body]).toMatchObject([200, { hog: EDITED, version: 2, draft: { hog: LIVE } }]);
    const [entry] = await functions.log(id);
    expect(entry).toMatchObject({
      activity: 'revision_restored',
      detail: { name: 'Webhook', version: 1, changes: [{ field: 'hog', before: EDITED, after: LIVE }] },
    });
    await functions.publish(id);
    expect(await functions.get(id)).toMatchObject({ hog: LIVE, version: 3, draft: null });
    expect(await versions(id)).toEqual([3, 2, 1]);
  });

  test('takes the place of a draft only where that is said', async () => {
    const { id } = await functions.create();
    await functions.edit(id, { hog: EDITED });
    const { draft_updated_at: first } = await functions.stage(id, { hog: OTHER });
    expect(await restore(id, 1)).toMatchObject({ status: 409, body: { code: 'draft_exists' } });
    const { draft_updated_at: second } = await functions.stage(id, { filters: { events: [{ id: 'paid' }] } });
    const old = { overwrite: true, base_updated_at: '2020-01-01T00:00:00Z' };
    expect(await restore(id, 1, old)).toMatchObject({ status: 409, body: { code: 'stale_update' } });
    expect((await functions.get(id)).draft.hog).toBe(OTHER);
    expect(second > first).toBe(true);
    const answer = await restore(id, 1, { overwrite: true, base_updated_at: second });
    expect(answer).toMatchObject({ status: 200, body: { draft: { hog: LIVE, filters: {} } } });
  });

  test('has the secrets of today, unless those of the revision are asked for', async () => {
    const { id } = await functions.create();
    await functions.edit(id, { hog: EDITED, ...rotated('rotated-token') });
    await restore(id, 1);
    expect((await functions.preview(id)).changed_fields).toEqual(['hog']);
    await functions.publish(id);
    expect(await functions.secrets(id)).toMatchObject({ token: { value: 'rotated-token' } });
    await restore(id, 1, { with_secrets: true });
    const { changes } = await functions.preview(id);
    expect(changes).toMatchObject([{ field: 'inputs', secret_inputs: ['token'] }]);
    await functions.publish(id);
    expect(await functions.secrets(id)).toMatchObject({ token: { value: 'live-token' } });
    expect(JSON.stringify(await functions.log(id))).not.toMatch(/(live|rotated)-token/);
  });

  test('brings back a secret that the function has lost', async () => {
    const { id } = await functions.create();
    await functions.edit(id, { inputs_schema: [WEBHOOK.inputs_schema[0]] });
    expect(await functions.secrets(id)).toEqual({});
    const { body } = await restore(id, 1);
    expect(body.draft.inputs.token).toEqual({ secret: true });
    await functions.publish(id);
    expect(await functions.secrets(id)).toMatchObject({ token: { value: 'live-token' } });
  });

  test('has no secrets of the draft that it replaces', async () => {
    const { id } = await functions.create();
    await functions.edit(id, { hog: EDITED });
    await functions.stage(id, rotated('staged-token'));
    await restore(id, 1, { overwrite: true });
    await functions.publish(id);
    expect(await functions.secrets(id)).toMatchObject({ token: { value: 'live-token' } });
  });
});

describe('another key', () => {
  test('seals the secrets of drafts and revisions too', async () => {
    const { id } = await functions.create();
    await functions.edit(id, rotated('rotated-token'));
    await functions.stage(id, rotated('staged-token'));
    const { rows: before } = await api.pool.query('select * from functions where id = $1', [id]);
    const [entry] = [...(api.keyring?.keys ?? [])].map(([name, key]) => `${name}:${key.toString('base64')}`);
    const keyring = parseKeyring(`k2:${Buffer.alloc(32, 9).toString('base64')},${entry}`);
    await resealSecrets(api.pool, sealedColumns(PRODUCTS), keyring);
    // Only the new key is left.
    const alone = { primary: 'k2', keys: new Map([...keyring.keys].filter(([name]) => name === 'k2')) };
    const opened = async (query: string, context: string) => {
      const { rows } = await api.pool.query(query, [id]);
      return JSON.parse(open(alone, rows[0].secrets, context)).inputs.token.value;
    };
    expect(before[0].secrets).toMatch(/^slc1\.k1\./);
    const draft = 'select secrets from function_drafts where function_id = $1';
    const revised = 'select secrets from function_revisions where function_id = $1 and version = ';
    expect(await opened(draft, SECRETS_OF.draft(id))).toBe('staged-token');
    expect(await opened(`${revised} 1`, SECRETS_OF.revision(id, 1))).toBe('live-token');
    expect(await opened(`${revised} 2`, SECRETS_OF.revision(id, 2))).toBe('rotated-token');
  });
});

describe('a revision that cannot be compiled any more', () => {
  test('is refused, and changes nothing', async () => {
    const berta = await api.createTenant('Berta');
    const hers = drafting(api, berta);
    const { id } = await hers.create({ filters: { filter_test_accounts: true } });
    await hers.edit(id, { filters: {} });
    const project = `/api/projects/${berta.projectId}/`;
    const test_account_filters = [{ key: 'id', type: 'cohort', value: 999_999_999 }];
    await api.request(berta, 'PATCH', project, { test_account_filters });
    const { status, body } = await hers.ask('POST', `${id}/revisions/1/restore/`, {});
    expect([status, body.attr]).toEqual([400, 'filters']);
    expect(body.detail).toMatch(/^Invalid filter configuration: /);
    expect((await hers.get(id)).draft).toBeNull();
    // A function that does not run may have such filters.
    await hers.edit(id, { enabled: false });
    expect((await hers.ask('POST', `${id}/revisions/1/restore/`, {})).status).toBe(200);
  });
});

describe('what is kept', () => {
  const keep = (bounds: { days?: number; bytes?: number }) =>
    keepFunctionVersions(
      api.pool,
      { newest: 100, days: 365, bytes: 256 * 1024 * 1024, ...bounds },
      { signal: new AbortController().signal, beat: () => undefined },
    );
  const left = async (table: string, ids: string[]) => {
    const column = table === 'functions' ? 'id' : 'function_id';
    const { rows } = await api.pool.query(
      `select distinct ${column} as id from ${table} where ${column} = any($1::uuid[])`,
      [ids],
    );
    return rows.map((row) => row.id);
  };

  test('a deleted function comes back until a year has passed, and is gone with its versions then', async () => {
    const [gone, young, waiting, live] = await Promise.all([1, 2, 3, 4].map(() => functions.create()));
    const ids = [gone.id, young.id, waiting.id, live.id];
    for (const id of ids) await functions.edit(id, { hog: EDITED });
    for (const id of ids.slice(0, 3)) await functions.edit(id, { deleted: true });
    await api.pool.query(
      `update functions set deleted_at = deleted_at - interval '400 days' where id = any($1::uuid[])`,
      [[gone.id, waiting.id]],
    );
    await api.pool.query(
      `insert into function_queue (id, project_id, function_id, version, globals, clock, seed)
       values (gen_random_uuid(), $1, $2, 1, '{}', now(), 1)`,
      [anna.projectId, waiting.id],
    );
    // All projects have a deletion of just now.
    await keep({});
    expect(new Set(await left('functions', ids))).toEqual(new Set([young.id, waiting.id, live.id]));
    expect(await left('function_revisions', [gone.id])).toEqual([]);
    expect(await left('function_revisions', [young.id])).toEqual([young.id]);
    await functions.edit(young.id, { deleted: false });
    expect(await versions(young.id)).toEqual([2, 1]);
    await api.pool.query('delete from function_queue');
  });

  test('deleted functions do not add up, and neither do the versions of others', async () => {
    const tenant = await api.createTenant('Filler');
    const own = drafting(api, tenant);
    const source = (size: number) =>
      `let text := '${Array.from({ length: size / 8 }, () => Math.random().toString(36).slice(2, 10)).join('')}'\nreturn text`;
    const { id } = await own.create();
    for (let version = 2; version <= 6; version += 1) await own.edit(id, { hog: source(60_000) });
    const deleted: string[] = [];
    for (let number = 0; number < 4; number += 1) {
      const made = await own.create({ hog: source(60_000) });
      await own.edit(made.id, { deleted: true });
      deleted.push(made.id);
    }
    await keep({ bytes: 250_000 });
    const { results } = (await own.ask('GET', `${id}/revisions/`)).body;
    const kept = results.map((one: { version: number }) => one.version);
    expect(kept[0]).toBe(6);
    expect(kept.length).toBeLessThan(6);
    expect(kept.length).toBeGreaterThan(1);
    const there = await left('functions', deleted);
    expect(there.length).toBeGreaterThan(0);
    expect(there.length).toBeLessThan(4);
    expect(there).toContain(deleted[3]);
    expect(
      await oldDeletedFunctions(api.pool, tenant.projectId, { days: 1, bytes: 250_000, limit: 10 }),
    ).toEqual([]);
    expect((await own.get(id)).hog.length).toBeGreaterThan(50_000);
  });
});
