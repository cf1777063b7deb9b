import { beforeAll, describe, expect, test } from '@jest/globals';
import { findIcon, ICONS } from '../../functions/icons.ts';
import { TEMPLATES } from '../../functions/templates/index.ts';
import { apiForFile, type Tenant } from '../support/api.ts';

const api = apiForFile();
let anna: Tenant;
const base = () => `/api/projects/${anna.projectId}/hog_functions/`;
const get = (path: string, who: Tenant | string | null = anna) => api.request(who, 'GET', path);
/** What keeps a browser from running anything in a picture. */
const GUARDED = {
  'content-type': expect.stringMatching(/^image\/svg\+xml/),
  'cache-control': 'public, max-age=86400',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; sandbox",
};

beforeAll(async () => {
  anna = await api.createTenant('Anna');
});

describe('the pictures of templates', () => {
  test.each(TEMPLATES.map((one) => [one.id, one.icon_url] as const))('%s has %s', async (_id, path) => {
    const answer = await get(path, null);
    expect([answer.statusCode, answer.body]).toEqual([200, expect.stringMatching(/^<svg /)]);
    expect(answer.headers).toMatchObject(GUARDED);
  });

  test('are well-formed, say their title, and have no scripts', () => {
    const text = '[^<>&"]*(?:&#\\d+;[^<>&"]*)*';
    const attributes = `(?: [A-Za-z-]+="[^"<>&]*")*`;
    const whole = new RegExp(
      `^<svg xmlns="http://www.w3.org/2000/svg"${attributes}><title>(${text})</title>` +
        `<rect${attributes} fill="(#[0-9a-f]{6})"/><text${attributes}>(${text})</text></svg>$`,
    );
    for (const { name, title, svg } of ICONS) {
      const [, said, color, letters] = svg.match(whole) ?? [];
      expect([name, said, color]).toEqual([name, title, expect.any(String)]);
      expect([name, letters]).toEqual([name, expect.stringMatching(/^\S{1,2}$/)]);
      expect(svg).not.toMatch(/ on[a-z]+=/);
    }
  });

  test('have names and ids of their own', () => {
    const names = ICONS.map(({ name }) => name);
    const ids = ICONS.flatMap(({ id }) => id ?? []);
    expect([new Set(names).size, new Set(ids).size]).toEqual([names.length, ids.length]);
    for (const one of names) expect(one).toMatch(/^[a-z0-9-]+$/);
  });

  test.each(['nope.svg', 'slack', 'slack.png', '..%2f..%2fpackage.json', '%2e%2e', '__proto__.svg', '.svg'])(
    'of a name that nothing has are 404: %s',
    async (file) => {
      const answer = await get(`/static/services/${file}`, null);
      expect([answer.statusCode, answer.json()]).toMatchObject([404, { code: 'not_found' }]);
    },
  );

  test('are read and never written, and a body in the request is not read', async () => {
    const asked = (method: 'GET' | 'POST', size: number) =>
      api.app.inject({
        ...{ method, url: '/static/services/slack.svg', payload: 'x'.repeat(size) },
        headers: { 'content-type': 'text/plain' },
      });
    expect((await asked('POST', 10)).statusCode).toBe(405);
    expect((await asked('GET', 2 ** 20)).body).toBe(findIcon('slack')?.svg);
  });
});

describe('the search for pictures', () => {
  test('finds services by their name and host', async () => {
    const { body, statusCode } = await get(`${base()}icons/?query=SLACK`);
    expect([statusCode, JSON.parse(body)]).toEqual([
      200,
      [
        {
          ...{ id: 'slack.com', name: 'Slack' },
          url: '/api/projects/@current/hog_functions/icon/?id=slack.com',
        },
      ],
    ]);
    const titles = (await get(`${base()}icons/?query=go`)).json().map(({ name }: { name: string }) => name);
    expect(titles[0]).toMatch(/^Go/);
    const hosts = (await get(`${base()}icons/?query=linear.app`)).json();
    expect(hosts).toMatchObject([{ id: 'linear.app' }]);
  });

  test.each(['', '?query=', '?query=%20', '?query=no-such-service', '?query=webhook'])(
    'finds nothing with %j',
    async (query) => {
      const { body } = await get(`${base()}icons/${query}`);
      expect(body).toBe('[]');
    },
  );

  test('leads to the picture', async () => {
    const [{ url }] = (await get(`${base()}icons/?query=hubspot`)).json();
    const { value } = await api.createKey(anna, { scopes: ['hog_function:read'] });
    const answer = await get(url.replace('@current', String(anna.projectId)), value);
    expect(answer.body).toBe(findIcon('hubspot')?.svg);
    expect(answer.headers).toMatchObject(GUARDED);
  });

  test.each([
    ['', 400, 'id is required'],
    ['?id=', 400, 'id is required'],
    ['?id=nowhere.example', 404, 'Not found.'],
    ['?id=webhook', 404, 'Not found.'],
  ])('shows no picture for %j', async (query, status, detail) => {
    const answer = await get(`${base()}icon/${query}`);
    expect([answer.statusCode, answer.json()]).toMatchObject([status, { detail }]);
  });

  test('needs the scope, and a query that is no book', async () => {
    const { value } = await api.createKey(anna, { scopes: ['batch_export:read'] });
    expect((await get(`${base()}icons/?query=slack`, value)).statusCode).toBe(403);
    expect((await get(`${base()}icon/?id=slack.com`, null)).statusCode).toBe(401);
    expect((await get(`${base()}icons/?query=${'x'.repeat(201)}`)).statusCode).toBe(400);
  });
});
