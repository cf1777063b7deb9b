import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { apiForFile } from '../support/api.ts';

const api = apiForFile();
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8';
const get = (accept?: string, url = '/') =>
  api.app.inject({ url, headers: accept === undefined ? {} : { accept } });

describe('GET /', () => {
  test.each([
    undefined,
    '*/*',
    'application/json',
    'application/json, text/html;q=0.9',
    'text/html;q=0',
    'text/htmlx',
    'text/html;q=x',
  ])('says as JSON what this is and where to go for Accept: %s', async (accept) => {
    const answer = await get(accept);
    expect([answer.statusCode, answer.headers['content-type']]).toEqual([
      200,
      'application/json; charset=utf-8',
    ]);
    expect(answer.json()).toEqual({
      name: 'Sluice',
      description: expect.stringContaining('product events'),
      api_docs: 'https://sluice.test/api/schema/swagger-ui/',
      openapi: 'https://sluice.test/api/schema/',
      capture: 'https://sluice.test/i/v0/e/',
      flags: 'https://sluice.test/flags',
      readiness: 'https://sluice.test/_readyz',
    });
  });

  test('every place that it names is there', async () => {
    const {
      name: _name,
      description: _description,
      ...places
    } = (await get()).json() as Record<string, string>;
    const page = (await get(BROWSER)).body;
    const linked = [...page.matchAll(/href="(\/[^"]*)"/g)].map((match) => match[1] as string);
    expect(linked).toHaveLength(3);
    for (const url of [...Object.values(places).map((place) => new URL(place).pathname), ...linked]) {
      const { statusCode } = await api.app.inject({ url });
      expect([url, [200, 204, 400].includes(statusCode)]).toEqual([url, true]);
    }
  });

  test.each([BROWSER, 'text/html', 'TEXT/HTML; q=0.5', 'application/json;q=0.5, text/html'])(
    'is a page for Accept: %s',
    async (accept) => {
      const answer = await get(accept);
      expect([answer.statusCode, answer.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
      expect(answer.body).toMatch(/^<!doctype html>[\s\S]*<h1>Sluice is running<\/h1>[\s\S]*<\/html>\n$/);
      expect(answer.body).toContain('curl https://sluice.test/i/v0/e/');
    },
  );

  test('the page loads and runs nothing, and its policy admits its own style alone', async () => {
    const { body, headers } = await get(BROWSER);
    expect(body).not.toMatch(/<script|<iframe|<img|<form|javascript:|\son\w+=|\sstyle=|@import|url\(/i);
    const style = /<style>([\s\S]*)<\/style>/.exec(body)?.[1] as string;
    const digest = createHash('sha256').update(style).digest('base64');
    expect(headers['content-security-policy']).toBe(
      `default-src 'none'; style-src 'sha256-${digest}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    );
    expect(headers['x-content-type-options']).toBe('nosniff');
  });

  test('caches keep the two apart, for every origin', async () => {
    const answer = await api.app.inject({ url: '/', headers: { origin: 'https://shop.example' } });
    expect(String(answer.headers.vary).split(/, */).sort()).toEqual(['Accept', 'Origin']);
    expect((await get()).headers.vary).toContain('Accept');
  });

  test('?format=json is JSON in a browser too, and HEAD has no body', async () => {
    expect((await get(BROWSER, '/?format=json')).json()).toMatchObject({ name: 'Sluice' });
    const head = await api.app.inject({ method: 'HEAD', url: '/' });
    expect([head.statusCode, head.body]).toEqual([200, '']);
  });

  test('other methods are refused, and a public URL cannot break out of the page', async () => {
    const answer = await api.app.inject({ method: 'POST', url: '/' });
    expect([answer.statusCode, answer.headers.allow]).toEqual([405, 'GET, HEAD, OPTIONS']);
    const app = await api.rebuild({
      config: { ...api.config, SLUICE_PUBLIC_URL: 'https://a.test/<b>&"' },
    });
    const { body } = await app.inject({ url: '/', headers: { accept: 'text/html' } });
    await app.close();
    expect(body).toContain('curl https://a.test/&lt;b&gt;&amp;&quot;/i/v0/e/');
    expect(body).not.toContain('<b>&');
  });
});
