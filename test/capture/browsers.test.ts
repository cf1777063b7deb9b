import { beforeAll, describe, expect, test } from '@jest/globals';
import { apiForFile, type Tenant } from '../support/api.ts';

const api = apiForFile();
let anna: Tenant;

beforeAll(async () => {
  anna = await api.createTenant('Anna');
});

const one = (event: string) => ({ api_key: anna.projectToken, event, distinct_id: 'u1' });
const send = (url: string, payload: unknown, headers: Record<string, string> = {}) =>
  api.app.inject({
    method: 'POST',
    url,
    headers: { 'content-type': 'application/json', ...headers },
    payload: typeof payload === 'string' ? payload : JSON.stringify(payload),
  });

describe('browsers', () => {
  test.each(['/e/', '/batch', '/i/v0/e/', '/i/v1/analytics/events', '/decide/', '/array/x/config', '/s/'])(
    'the preflight of %s allows any header',
    async (url) => {
      const answer = await api.app.inject({
        method: 'OPTIONS',
        url,
        headers: {
          origin: 'https://shop.example',
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'content-type,traceparent,x-datadog-origin,sentry-trace',
        },
      });
      expect(answer.statusCode).toBe(200);
      expect(answer.headers).toMatchObject({
        'access-control-allow-origin': 'https://shop.example',
        'access-control-allow-credentials': 'true',
        'access-control-allow-headers': 'content-type,traceparent,x-datadog-origin,sentry-trace',
        'access-control-allow-methods': expect.stringContaining('POST'),
      });
    },
  );

  test('answers and refusals can be read by the page', async () => {
    for (const body of [one('seen'), {}]) {
      const { headers } = await send('/e/', body, {
        origin: 'https://shop.example',
        'content-type': 'text/plain',
      });
      expect(headers).toMatchObject({
        'access-control-allow-origin': 'https://shop.example',
        'access-control-allow-credentials': 'true',
      });
    }
  });

  test('a path that nobody has can be asked for with cookies: the page sees the 404', async () => {
    const origin = { origin: 'https://shop.example' };
    for (const url of ['/static/gone.js', '/api/nothing/', '/e/x/y', '/api/projects/x/nothing/']) {
      const answer = await api.app.inject({ url, headers: origin });
      expect([url, answer.statusCode]).toEqual([url, 404]);
      expect(answer.headers).toMatchObject({
        'access-control-allow-origin': 'https://shop.example',
        'access-control-allow-credentials': 'true',
      });
      const preflight = await api.app.inject({
        ...{ method: 'OPTIONS', url },
        headers: { ...origin, 'access-control-request-method': 'POST' },
      });
      expect(preflight.headers).toMatchObject({
        'access-control-allow-origin': 'https://shop.example',
        'access-control-allow-credentials': 'true',
      });
    }
    for (const [method, url] of [
      ['OPTIONS', '/api/users/@me/'],
      ['OPTIONS', `/api/projects/${anna.projectId}/persons/x/`],
      ['PUT', '/api/users/@me/'],
      ['GET', `/api/projects/${anna.projectId}/persons/x/`],
      ['GET', '/'],
    ] as const) {
      const headers = { ...origin, 'access-control-request-method': 'PATCH' };
      const answer = await api.app.inject({ method, url, headers });
      expect([method, url, answer.headers['access-control-allow-origin']]).toEqual([
        method,
        url,
        origin.origin,
      ]);
      expect(answer.headers).not.toHaveProperty('access-control-allow-credentials');
    }
  });

  test('the management API allows no cookies', async () => {
    const { headers } = await api.app.inject({
      url: '/api/users/@me/',
      headers: { origin: 'https://shop.example' },
    });
    expect(headers).not.toHaveProperty('access-control-allow-credentials');
  });

  test('the remote config: JSON and script; 404 for a key that nobody has', async () => {
    const config = await api.app.inject({ url: `/array/${anna.projectToken}/config` });
    expect(config.json()).toMatchObject({
      token: anna.projectToken,
      supportedCompression: ['gzip', 'gzip-js'],
    });
    const script = await api.app.inject({ url: `/array/${anna.projectToken}/config.js` });
    expect(script.headers['content-type']).toBe('application/javascript; charset=utf-8');
    const window: Record<string, Record<string, unknown>> = {};
    new Function('window', script.body)(window);
    expect(window._POSTHOG_REMOTE_CONFIG?.[anna.projectToken]).toEqual({
      config: config.json(),
      siteApps: [],
    });
    for (const url of ['/array/phc_nobody/config', '/array/phc_nobody/config.js', '/array/a%00/config']) {
      expect((await api.app.inject({ url })).statusCode).toBe(404);
    }
  });

  test('decide tells older clients how to send', async () => {
    const data = Buffer.from(JSON.stringify({ token: anna.projectToken, distinct_id: 'u' })).toString(
      'base64',
    );
    const answer = await send('/decide/?v=3&compression=base64', `data=${encodeURIComponent(data)}`, {
      'content-type': 'application/x-www-form-urlencoded',
    });
    expect(answer.json()).toMatchObject({ supportedCompression: ['gzip', 'gzip-js'], featureFlags: {} });
    expect((await send('/decide/', { token: 'phc_nobody' })).statusCode).toBe(401);
    const twice = await send('/decide/?compression=gzip&compression=base64', data, {
      'content-type': 'text/plain',
    });
    expect(twice.statusCode).toBe(200);
    expect((await send('/decide/', 'x')).statusCode).toBe(400);
  });
});
