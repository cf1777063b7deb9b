import { beforeAll, describe, expect, test } from '@jest/globals';
import { apiForFile, type Tenant } from '../support/api.ts';

const api = apiForFile();
let anna: Tenant;
const base = () => `/api/projects/${anna.projectId}/hog_functions/`;

beforeAll(async () => {
  anna = await api.createTenant('Anna');
});

const check = async (body: object, id = 'new') => {
  const answer = await api.request(anna, 'POST', `${base()}${id}/check/`, body);
  return { status: answer.statusCode, body: answer.json() };
};
const count = async () => (await api.request(anna, 'GET', base())).json().count as number;

describe('a check of a function', () => {
  test('stores nothing, and tells what is most likely wrong', async () => {
    const before = await count();
    expect(await check({ hog: 'return fetch2(1)' })).toEqual({
      status: 200,
      body: { warnings: [expect.stringContaining('fetch2() does not exist')] },
    });
    const hog = `fun sent(one) { return one }
      let encode := base64Encode
      fetch(event.uuid, {"body": encode(inputs.x), 'method': sent('PUT')})`;
    expect((await check({ hog })).body.warnings).toEqual([
      expect.stringMatching(/^The variable body does not exist\..* single quotes: 'body'\.$/),
    ]);
    const filters = { actions: [{ id: '99', type: 'actions' }] };
    expect((await check({ hog: 'return 1', enabled: true, filters })).body.warnings).toEqual([
      'The action 99 does not exist in this project, or was deleted. A filter on it matches no event.',
    ]);
    expect(await check({ template_id: 'template-drop-events' })).toEqual({
      status: 200,
      body: { warnings: [] },
    });
    expect(await count()).toBe(before);
  });

  test('answers with the error that storing gives', async () => {
    for (const body of [
      {},
      { hog: 'let x := ;' },
      { hog: 'return 1', name: 'x'.repeat(401) },
      { hog: 'return 1', inputs_schema: [{ key: 'a', type: 'string', required: true }] },
      { hog: 'return 1', enabled: true, filters: { properties: [{ type: 'cohort', key: 'id', value: 1 }] } },
      { hog: 'return 1', template_id: 'nope' },
    ]) {
      const stored = await api.request(anna, 'POST', base(), body);
      expect(stored.statusCode).toBe(400);
      expect(await check(body)).toEqual({ status: 400, body: stored.json() });
    }
    // Filters of a function that does not run may be broken.
    const filters = { properties: [{ type: 'cohort', key: 'id', value: 1 }] };
    expect((await check({ hog: 'return 1', filters })).status).toBe(200);
  });

  test('of a stored function fills in what is left out, secrets too', async () => {
    const schema = [{ key: 'token', type: 'string', secret: true, required: true }];
    const made = await api.request(anna, 'POST', base(), {
      ...{ hog: 'return 1', inputs_schema: schema, enabled: true },
      inputs: { token: { value: 'tok-1' } },
    });
    const { id, version } = made.json();
    const kept = { inputs: { token: { secret: true } } };
    expect((await check(kept, id)).status).toBe(200);
    expect((await check({ hog: 'return 1', inputs_schema: schema, ...kept })).body).toMatchObject({
      attr: 'inputs__token',
    });
    expect((await check({ type: 'transformation' }, id)).body).toMatchObject({ attr: 'type' });
    const filters = { properties: [{ type: 'cohort', key: 'id', value: 1 }] };
    expect((await check({ filters }, id)).body).toMatchObject({ attr: 'filters' });
    expect((await api.request(anna, 'GET', `${base()}${id}/`)).json().version).toBe(version);
  });
});
