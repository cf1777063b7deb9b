// What a request makes the API compile neither stops it nor takes more than its share.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { App } from '../../../api/dependencies.ts';
import { createCompiler, type ModelCompiler } from '../../../models/index.ts';
import { apiForFile, type Tenant } from '../../support/api.ts';
import { endlessText } from '../../support/endless-text.ts';

const api = apiForFile();
let anna: Tenant;
let ben: Tenant;
let compiler: ModelCompiler;
let app: App;
let base: string;

beforeAll(async () => {
  [anna, ben] = [await api.createTenant('Anna'), await api.createTenant('Ben')];
  // Also on a busy machine, the first text is given up before the second one has waited for too long.
  compiler = createCompiler({ threads: 2, timeoutMs: 1_500 });
  app = await api.rebuild({ compiler });
  base = await app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(async () => {
  await app?.close();
  await compiler?.close();
});

const exportOf = (more: object) => ({
  name: 'x',
  interval: 'hour',
  destination: {
    type: 'S3',
    config: {
      ...{ bucket_name: 'lake', region: 'eu-central-1', prefix: 'p' },
      ...{ aws_access_key_id: 'id', aws_secret_access_key: 'secret' },
    },
  },
  ...more,
});
const post = (tenant: Tenant, path: string, body: unknown): Promise<Response> =>
  fetch(`${base}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${tenant.key}` },
    body: JSON.stringify(body),
  });
const preview = (tenant: Tenant, more: object) =>
  post(tenant, `/api/projects/${tenant.projectId}/batch_exports/preview/`, exportOf(more));
const capture = () =>
  post(ben, '/i/v0/e/', { api_key: ben.projectToken, event: 'e', distinct_id: 'd', properties: {} });

/** Filters that take longer than they may take. */
const endless = (n: number) => ({ filters: [{ type: 'hogql', key: endlessText(`a${n}`) }] });

describe('while filters are compiled that take too long', () => {
  test('capture, health and the previews of other projects are answered first', async () => {
    const order: string[] = [];
    const note = async (name: string, promise: Promise<Response>) => {
      const { status } = await promise;
      order.push(name);
      return status;
    };
    // As many as there are threads.
    const slow = [1, 2].map((n) => note('slow', preview(anna, endless(n))));
    for (let i = 0; i < 10; i++) {
      expect(await note('live', fetch(`${base}/_livez`))).toBe(200);
      expect(await note('captured', capture())).toBe(200);
    }
    expect(await note('preview', preview(ben, { filters: [{ type: 'event', key: 'a', value: 'b' }] }))).toBe(
      200,
    );
    expect(order.slice(0, 21)).toEqual([...Array(10).fill(['live', 'captured']).flat(), 'preview']);
    expect(await Promise.all(slow)).toEqual([400, 400]);
  });

  test('the answer says what takes too long', async () => {
    const answer = await preview(anna, endless(9));
    expect([answer.status, await answer.json()]).toEqual([
      400,
      expect.objectContaining({
        attr: 'filters',
        detail:
          'The filters and columns take too long to read: at most 1.5 seconds are allowed. Make them simpler.',
      }),
    ]);
  });
});

describe('patterns', () => {
  const filters = (count: number, value: string) =>
    Array.from({ length: count }, () => ({ type: 'event', key: 'k', operator: 'regex', value }));
  const WRONG = 'One or more provided filters are invalid: ';

  test.each([
    ['one that repeats a lot', filters(60, '.{999}'.repeat(200)), /^0\.value: .* at most 10,000, .* 199,800/],
    [
      'many of them',
      filters(900, '.{99}'),
      /^202\.value: All regular expressions together .* at most 20,000/,
    ],
    ['one that is too much for Postgres', filters(1, '(?:a?){255}'), /at most 2,000, and this one has 2,550/],
  ])('%s are refused, and the error names the filter', async (_what, given, message) => {
    const { projectId } = anna;
    for (const path of ['preview/', '']) {
      const answer = await post(
        anna,
        `/api/projects/${projectId}/batch_exports/${path}`,
        exportOf({ filters: given }),
      );
      const { attr, detail } = (await answer.json()) as { attr: string; detail: string };
      expect([answer.status, attr, detail.slice(0, WRONG.length)]).toEqual([400, 'filters', WRONG]);
      expect(detail.slice(WRONG.length)).toMatch(message);
    }
  });

  test('fifty as people write them, and a list of thousands of values, are allowed', async () => {
    const list = Array.from({ length: 4_000 }, (_, index) => `user-${index}@example.com`);
    const given = [
      ...filters(50, '^https?://(www\\.)?example\\.com/(shop|blog)/[^/?#]{1,40}/?$'),
      { type: 'event', key: 'email', operator: 'exact', value: list },
    ];
    expect((await preview(ben, { filters: given })).status).toBe(200);
  });
});
