import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import { BROWSER_SCRIPTS } from '../../api/browser-scripts.ts';
import { apiForFile, listenForFile } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { browse } from './chromium.ts';
import { CLIENTS, findChromium } from './client-programs.ts';

const api = apiForFile();
const require = createRequire(import.meta.url);
const folder = path.dirname(require.resolve('posthog-js/package.json'));
const { version } = require('posthog-js/package.json') as { version: string };
const clients = listenForFile(api);

const get = (url: string, headers: Record<string, string> = {}) => api.app.inject({ url, headers });

describe('the files of posthog-js', () => {
  test.each(BROWSER_SCRIPTS)('%s is served as it was published', async (name) => {
    const file = readFileSync(path.join(folder, 'dist', name), 'utf8');
    const answer = await get(`/static/${name}?v=1.2.3`, { origin: 'https://shop.example' });
    expect([answer.statusCode, answer.body === file]).toEqual([200, true]);
    expect(answer.headers).toMatchObject({
      'content-type': 'application/javascript; charset=utf-8',
      'cache-control': 'public, max-age=300',
      'access-control-allow-origin': 'https://shop.example',
      vary: 'Origin, Accept-Encoding',
    });
    const small = await get(`/static/${name}`, { 'accept-encoding': 'br, gzip' });
    expect(small.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(small.rawPayload).toString() === file).toBe(true);
    const again = await get(`/static/${name}`, { 'if-none-match': String(small.headers.etag) });
    expect([again.statusCode, again.body]).toEqual([304, '']);
  });

  test('a path may name the version, which then must be the one that there is', async () => {
    const cacheOf = async (asked: string) => {
      const { statusCode, headers } = await get(`/static/${asked}/surveys.js`);
      return [statusCode, headers['cache-control']];
    };
    expect(await cacheOf(version)).toEqual([200, 'public, max-age=31536000, immutable']);
    expect(await cacheOf('1')).toEqual([200, 'public, max-age=300']);
    for (const other of ['2.0.0', '1.434', '2', 'services', '..', '%2e%2e', '1.0.0%0d%0aX: y']) {
      expect([other, (await cacheOf(other))[0]]).toEqual([other, 404]);
    }
  });

  test('a part goes with clients of other versions, and a build is never another one than the page names', async () => {
    const part = await get('/static/1.449.2/surveys.js');
    expect([part.statusCode, part.headers.location, part.body]).toEqual([307, '../surveys.js', '']);
    expect((await get('/static/1.449.2/array.js')).statusCode).toBe(404);
    expect((await get('/static/1.449.2/recorder.js')).statusCode).toBe(404);
    const followed = await fetch(`${clients.host}/static/1.449.2/surveys.js`, {
      headers: { origin: 'https://shop.example' },
    });
    expect([followed.url, followed.status]).toEqual([`${clients.host}/static/surveys.js`, 200]);
    await followed.body?.cancel();
  });

  test.each([
    ...[
      'recorder.js',
      'lazy-recorder.js',
      'toolbar.js',
      'module.js',
      'array.js.map',
      'array',
      '',
      '__proto__',
    ],
    ...['..%2fpackage.json', '%2e%2e%2fpackage.json', '..%5cpackage.json', '../package.json', 'array.js%00'],
  ])('there is no %s', async (name) => {
    expect((await get(`/static/${name}`)).statusCode).toBe(404);
    expect((await get(`/static/${version}/${name}`)).statusCode).toBe(404);
  });
});

const { found, reason } = findChromium();
if (found === undefined) process.stderr.write(`skipped: the snippet in Chromium: ${reason}\n`);

(found === undefined ? test.skip : test)(
  'a page that has only the snippet captures, evaluates a flag and shows a survey, and nothing fails or warns',
  async () => {
    const tenant = await api.createTenant('snippet');
    const create = async (area: string, body: object) => {
      const answer = await api.request(tenant, 'POST', `/api/projects/${tenant.projectId}/${area}/`, body);
      expect([answer.statusCode, answer.body]).toEqual([201, expect.any(String)]);
    };
    await create('feature_flags', {
      key: 'new-search',
      filters: { groups: [{ properties: [], rollout_percentage: 100 }] },
    });
    await create('surveys', {
      ...{ name: 'Liking', type: 'popover', start_date: new Date().toISOString() },
      questions: [{ type: 'open', question: 'How do you like it?' }],
    });
    const names = ['$feature_flag_called', '$pageview', 'before the library', 'survey shown'];
    const stored = async () =>
      (
        await api.pool.query<{ event: string }>(
          'select distinct event from events where project_id = $1 and event = any($2) order by event',
          [tenant.projectId, names],
        )
      ).rows.map(({ event }) => event);
    const arrived = eventually(async () => (await stored()).length === names.length);
    clients.answers.length = 0;
    const use = `window.useSnippet(${JSON.stringify(clients.host)}, ${JSON.stringify(tenant.projectToken)}, (seen) => fetch('/done', { method: 'POST', body: seen }))`;
    const files = {
      '/': `<!doctype html><title>Shop</title><body><script src="/page.js"></script><script>${use}</script>`,
      '/page.js': `${readFileSync(path.join(CLIENTS, 'snippet.js'), 'utf8')}; window.useSnippet = useSnippet;`,
    };
    const seen = JSON.parse(await browse(found as string, { files, path: '/', arrived }));
    await arrived;
    expect(seen).toEqual({
      ...{ version, flag: true, question: 'How do you like it?', written: [], unloaded: [] },
      loaded: expect.arrayContaining([
        `${clients.host}/static/array.js`,
        `${clients.host}/array/${tenant.projectToken}/config.js`,
        `${clients.host}/static/${version}/surveys.js`,
      ]),
    });
    expect(await stored()).toEqual(names);
    expect(clients.answers.filter((one) => !/ 20[04]$/.test(one))).toEqual([]);
    expect(clients.answers).toContain('GET /static/array.js 200');
  },
  120_000,
);
