import { beforeAll, describe, expect, test } from '@jest/globals';
import { similarTo } from '../../functions/rules/similar.ts';
import { apiForFile, type Tenant } from '../support/api.ts';

const api = apiForFile();

interface Item {
  name: string | null;
  search_match_type?: string;
}

const find = async (tenant: Tenant, query: Record<string, string>): Promise<Item[]> => {
  const path = `/api/projects/${tenant.projectId}/hog_functions/?${new URLSearchParams(query)}`;
  const answer = await api.request(tenant, 'GET', path);
  expect([path, answer.statusCode]).toEqual([path, 200]);
  return answer.json().results;
};
const names = async (tenant: Tenant, query: Record<string, string>) =>
  (await find(tenant, query)).map(({ name }) => name);
const create = async (tenant: Tenant, ...given: object[]) => {
  for (const one of given) {
    const body = { hog: 'return event', ...one };
    const answer = await api.request(
      tenant,
      'POST',
      `/api/projects/${tenant.projectId}/hog_functions/`,
      body,
    );
    expect(answer.statusCode).toBe(201);
  }
};

describe('searching for functions', () => {
  let anna: Tenant;
  beforeAll(async () => {
    anna = await api.createTenant('Anna');
    await create(
      anna,
      ...['Ad Sales', 'Email Sales', 'Sales', 'Sales Funnel', 'Weekly Sales'].map((name) => ({ name })),
      { name: 'Q4', description: 'about sales' },
      { name: null, description: 'also sales' },
      { name: 'alerts+ops@example.com' },
      { name: 'Slack notification' },
      { name: 'slcak metrics' },
      { name: 'Slck transform', type: 'transformation' },
    );
  });

  test('shows the name itself first, then names that begin with it, names that have it, and descriptions', async () => {
    const found = await names(anna, { search: 'sALES' });
    expect(found.slice(0, 2)).toEqual(['Sales', 'Sales Funnel']);
    expect(found.slice(2, 5).toSorted()).toEqual(['Ad Sales', 'Email Sales', 'Weekly Sales']);
    expect(found.slice(5)).toEqual([null, 'Q4']);
  });

  test('finds what is mistyped, but only if nothing has the text', async () => {
    expect(await find(anna, { search: 'slack' })).toMatchObject([
      { name: 'Slack notification', search_match_type: 'exact' },
    ]);
    const mistyped = await find(anna, { search: 'slakc' });
    expect(mistyped.map(({ name }) => name)).toContain('Slack notification');
    expect(new Set(mistyped.map((one) => one.search_match_type))).toEqual(new Set(['similar']));
    expect(mistyped.map(({ name }) => name)).not.toContain('Sales');
  });

  test('keeps to the other filters', async () => {
    expect(await find(anna, { search: 'slack', type: 'transformation' })).toMatchObject([
      { name: 'Slck transform', search_match_type: 'similar' },
    ]);
    expect(await names(anna, { search: 'slack', enabled: 'true' })).toEqual([]);
    const berta = await api.createTenant('Berta');
    expect(await names(berta, { search: 'slakc' })).toEqual([]);
  });

  test('says how whole functions match too, and nothing without a search', async () => {
    const [first] = await find(anna, { search: 'alerts+ops@example.com', full: 'true' });
    expect(first).toMatchObject({ search_match_type: 'exact', bytecode: expect.any(Array) });
    expect((await find(anna, {})).some((one) => 'search_match_type' in one)).toBe(false);
  });

  test.each(['&|!', "'; DROP TABLE--", '\0\0', '%', '_', '\\'])('takes %j as it is', async (search) => {
    await find(anna, { search });
  });
});

test('names are similar if they share enough of a word', () => {
  const named = ['Slack notification', 'slick', 'Webhook', ''].map((name) => ({ name }));
  const like = (text: string) => similarTo(text, named).map(({ name }) => name);
  expect(like('slcak')).toEqual(['Slack notification', 'slick']);
  expect(like('webhok')).toEqual(['Webhook']);
  expect(like('   ')).toEqual([]);
  expect(like('zzz')).toEqual([]);
});
