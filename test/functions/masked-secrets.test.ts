import { beforeAll, describe, expect, test } from '@jest/globals';
import { NO_SECRETS, SECRETS_OF, sealSecrets } from '../../functions/reads/secrets.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { type Drafting, drafting, WEBHOOK } from './drafting.ts';

const api = apiForFile();
let anna: Tenant;
let functions: Drafting;
const MASK = '********';

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  functions = drafting(api, anna);
});

/** Stores secrets as an import from elsewhere does that takes the mask for a value. */
async function store(id: string, token: string, table: 'functions' | 'function_drafts' = 'functions') {
  const isDraft = table === 'function_drafts';
  const context = isDraft ? SECRETS_OF.draft(id) : SECRETS_OF.function(id);
  const mappings = [{ name: 'm', inputs: { key: { value: token } } }];
  const sealed = sealSecrets(api.keyring, context, { inputs: { token: { value: token } }, mappings });
  const column = isDraft ? 'function_id' : 'id';
  await api.pool.query(`update ${table} set secrets = $2 where ${column} = $1`, [id, sealed]);
}

describe('the list of masked secrets', () => {
  test('names functions that store the mask, and no values', async () => {
    const masked = await functions.create({ name: null });
    const drafted = await functions.create({ name: 'Drafted', enabled: false });
    const good = await functions.create({ name: 'Good' });
    const deleted = await functions.create();
    await functions.stage(drafted.id, { inputs: { ...WEBHOOK.inputs, token: { value: 'staged-token' } } });
    await store(masked.id, MASK);
    await store(deleted.id, MASK);
    await store(good.id, `${MASK}abc`);
    await store(drafted.id, MASK, 'function_drafts');
    await functions.edit(deleted.id, { deleted: true });
    const { status, body } = await functions.ask('GET', 'masked_secrets/');
    expect(status).toBe(200);
    const keys = ['0__key', 'token'];
    expect(body).toEqual([
      {
        ...{ id: drafted.id, name: 'Drafted', type: 'destination', enabled: false },
        ...{ input_keys: [], draft_input_keys: keys },
      },
      {
        ...{ id: masked.id, name: '', type: 'destination', enabled: true },
        ...{ input_keys: keys, draft_input_keys: [] },
      },
    ]);
  });

  test('is empty for others, and needs only the scope to read', async () => {
    const berta = await api.createTenant('Berta');
    await store((await functions.create()).id, MASK);
    expect(await drafting(api, berta).ask('GET', 'masked_secrets/')).toEqual({ status: 200, body: [] });
    const statusWith = async (scope: string) => {
      const { value: key } = await api.createKey(anna, { scopes: [scope] });
      return (await functions.ask('GET', 'masked_secrets/', undefined, { key })).status;
    };
    expect([await statusWith('hog_function:read'), await statusWith('batch_export:read')]).toEqual([
      200, 403,
    ]);
    const url = `/api/projects/${anna.projectId}/hog_functions/masked_secrets/`;
    expect((await api.request(berta, 'GET', url)).statusCode).toBe(404);
    expect((await api.request(null, 'GET', url)).statusCode).toBe(401);
  });

  test('passes over secrets that cannot be opened', async () => {
    const dora = await api.createTenant('Dora');
    const own = drafting(api, dora);
    const [broken, masked] = [await own.create(), await own.create()];
    await store(masked.id, MASK);
    const other = sealSecrets(api.keyring, 'another row', {
      ...NO_SECRETS,
      inputs: { token: { value: MASK } },
    });
    await api.pool.query('update functions set secrets = $2 where id = $1', [broken.id, other]);
    const { body } = await own.ask('GET', 'masked_secrets/');
    expect(body.map((one: { id: string }) => one.id)).toEqual([masked.id]);
  });

  test('goes through all functions', async () => {
    const emma = await api.createTenant('Emma');
    const own = drafting(api, emma);
    const { id } = await own.create();
    await api.pool.query(
      `insert into functions (project_id, id, type, description, enabled, hog, inputs_schema, inputs, filters)
       select project_id, gen_random_uuid(), type, description, enabled, hog, inputs_schema, inputs, filters
       from functions, generate_series(1, 250) where id = $1`,
      [id],
    );
    const { rows } = await api.pool.query('select id from functions where project_id = $1', [emma.projectId]);
    for (const row of rows) await store(row.id, MASK);
    expect((await own.ask('GET', 'masked_secrets/')).body).toHaveLength(251);
  });
});
