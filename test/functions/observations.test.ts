import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { apiForFile, type Tenant } from '../support/api.ts';

const api = apiForFile();
let anna: Tenant;
let id: string;
const instance = randomUUID();
const other = randomUUID();

const get = async (path: string) => {
  const answer = await api.request(
    anna,
    'GET',
    `/api/projects/${anna.projectId}/hog_functions/${id}/${path}`,
  );
  return { status: answer.statusCode, body: answer.json() };
};

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  const made = await api.request(anna, 'POST', `/api/projects/${anna.projectId}/hog_functions/`, {
    hog: 'return 1',
  });
  id = made.json().id;
  const entries = [
    [instance, '2026-01-01T10:00:00.001Z', 'info', 'First 100%'],
    [instance, '2026-01-01T10:00:00.002Z', 'error', 'second'],
    [other, '2026-01-01T10:00:00.003Z', 'debug', 'third'],
  ];
  for (const [one, at, level, message] of entries) {
    await api.pool.query(
      `insert into function_logs (project_id, function_id, instance_id, timestamp, level, message)
       values ($1, $2, $3, $4, $5, $6)`,
      [anna.projectId, id, one, at, level, message],
    );
  }
  const counts = [
    ['2026-01-01T10:00:00Z', 'success', 'succeeded', 3],
    ['2026-01-01T11:00:00Z', 'failure', 'failed', 1],
    ['2026-01-02T00:00:00Z', 'success', 'succeeded', 2],
  ];
  for (const [hour, kind, name, count] of counts) {
    await api.pool.query(
      'insert into function_metrics (project_id, function_id, hour, kind, name, count) values ($1, $2, $3, $4, $5, $6)',
      [anna.projectId, id, hour, kind, name, count],
    );
  }
});

describe('the log', () => {
  const messages = async (query: string) => {
    const { status, body } = await get(`logs/${query}`);
    return status === 200 ? body.results.map((one: { message: string }) => one.message) : body.attr;
  };

  test('shows entries, newest first', async () => {
    const { body } = await get('logs/');
    expect(body).toMatchObject({ count: 3, next: null, previous: null });
    expect(body.results[0]).toEqual({
      ...{ log_source_id: id, instance_id: other, level: 'DEBUG', message: 'third' },
      timestamp: '2026-01-01T10:00:00.003000Z',
    });
  });

  test.each([
    ['?limit=1', ['third']],
    ['?level=info,ERROR', ['second', 'First 100%']],
    ['?level=info&level=debug', ['third', 'First 100%']],
    ['?search=first%20100%25', ['First 100%']],
    [`?instance_id=${instance}`, ['second', 'First 100%']],
    ['?after=2026-01-01T10:00:00.001Z&before=2026-01-01T10:00:00.003Z', ['second']],
    ['?level=loud', 'level__0'],
    ['?limit=501', 'limit'],
    ['?limit=0', 'limit'],
    ['?instance_id=x', 'instance_id'],
    ['?after=never', 'after'],
  ])('with %s', async (query, expected) => {
    expect(await messages(query)).toEqual(expected);
  });
});

describe('the counts', () => {
  const range = 'after=2026-01-01T00:00:00Z&before=2026-01-03T00:00:00Z';

  test('come by day, with zeros', async () => {
    const { body } = await get(`metrics/?${range}`);
    expect(body).toEqual({
      labels: ['2026-01-01', '2026-01-02', '2026-01-03'],
      series: [
        { name: 'failure', values: [1, 0, 0] },
        { name: 'success', values: [3, 2, 0] },
      ],
    });
  });

  test('come by name, and only those that are asked for', async () => {
    const { body } = await get(`metrics/?${range}&interval=week&breakdown_by=name&name=succeeded`);
    expect(body).toEqual({ labels: ['2025-12-29'], series: [{ name: 'succeeded', values: [5] }] });
  });

  test('add up', async () => {
    expect((await get(`metrics/totals/?${range}`)).body).toEqual({ totals: { success: 5, failure: 1 } });
    expect((await get(`metrics/totals/?${range}&kind=failure&breakdown_by=name`)).body).toEqual({
      totals: { failed: 1 },
    });
    expect((await get('metrics/totals/')).body).toEqual({ totals: {} });
    expect((await get(`metrics/totals/?${range}&interval=hour&kind=success`)).body).toEqual({
      totals: { success: 5 },
    });
    expect((await get('metrics/totals/?interval=year')).status).toBe(400);
  });
});

describe('templates', () => {
  const ids = async (url: string, tenant: Tenant | null = null) => {
    const answer = await api.request(tenant, 'GET', url);
    expect(answer.statusCode).toBe(200);
    return answer.json().results.map((one: { id: string }) => one.id) as string[];
  };

  test('are listed for everybody, by name', async () => {
    const found = await ids('/api/public_hog_function_templates/');
    expect(found).toContain('template-webhook');
    expect(found).not.toContain('template-drop-events');
    expect(await ids('/api/public_hog_function_templates/?types=transformation')).toContain(
      'template-drop-events',
    );
    expect(await ids('/api/public_hog_function_templates/?template_id=template-drop-events')).toEqual([
      'template-drop-events',
    ]);
    expect(await ids('/api/public_hog_function_templates/?limit=1')).toHaveLength(1);
    expect(await ids('/api/public_hog_function_templates/?types=')).toEqual(found);
    expect(await ids('/api/public_hog_function_templates/?type=site_app&types=transformation')).toContain(
      'template-blank-site-app',
    );
    // Case does not matter.
    expect(found.indexOf('template-accoil')).toBeLessThan(found.indexOf('template-aws-kinesis'));
  });

  test('are shown to everybody by their ids', async () => {
    const one = async (id: string) => {
      const answer = await api.request(null, 'GET', `/api/public_hog_function_templates/${id}/`);
      return [answer.statusCode, answer.json().id];
    };
    expect(await one('template-webhook')).toEqual([200, 'template-webhook']);
    expect(await one('template-nope')).toEqual([404, undefined]);
  });

  test('that the project uses come first', async () => {
    const url = `/api/projects/${anna.projectId}/hog_function_templates/?types=destination,transformation`;
    await api.request(anna, 'POST', `/api/projects/${anna.projectId}/hog_functions/`, {
      template_id: 'template-webhook',
      inputs: { url: { value: 'https://example.com' } },
    });
    expect((await ids(url, anna))[0]).toBe('template-webhook');
    await Promise.all(
      [1, 2].map(() =>
        api.request(anna, 'POST', `/api/projects/${anna.projectId}/hog_functions/`, {
          template_id: 'template-drop-events',
          type: 'transformation',
        }),
      ),
    );
    expect((await ids(url, anna))[0]).toBe('template-drop-events');
  });

  test('can be retrieved', async () => {
    const url = `/api/projects/${anna.projectId}/hog_function_templates/`;
    const found = await api.request(anna, 'GET', `${url}template-webhook/`);
    expect(found.json()).toMatchObject({ id: 'template-webhook', code_language: 'hog', free: true });
    expect((await api.request(anna, 'GET', `${url}nope/`)).statusCode).toBe(404);
  });
});
