import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, expect, test } from '@jest/globals';
import { addressOf } from '../../api/fair-starts.ts';
import { DirectRoutes, type LaneRequest } from '../../api/public/direct.ts';

const requestOf = (method: string, url: string, headers: Record<string, string> = {}) =>
  ({ method, url, headers, socket: { remoteAddress: '10.0.0.1' } }) as unknown as IncomingMessage;
const response = {} as ServerResponse;

function routesFor(proxies: string[] = []) {
  const taken: LaneRequest[] = [];
  const routes = new DirectRoutes({
    ...{ idOf: () => 'an id', addressOf: addressOf(proxies), log: {} as LaneRequest['log'] },
  });
  routes.add('POST', '/flags', (request) => taken.push(request));
  routes.add('GET', '/array/:token/config', (request) => taken.push(request));
  return { routes, taken };
}

describe('the direct way', () => {
  test.each([
    ['POST', '/flags', true],
    ['POST', '/flags/', true],
    ['POST', '/flags?v=2', true],
    ['POST', '/flags/?v=2', true],
    ['GET', '/flags', false],
    ['OPTIONS', '/flags', false],
    ['POST', '/flags//', false],
    ['POST', '/Flags', false],
    ['POST', '/%66lags', false],
    ['POST', '/flags#part', false],
    ['POST', '/flags?v=2#part', false],
    ['POST', 'http://host/flags', false],
    ['GET', '/array/phc_1/config', false],
    ['GET', '/array/:token/config', false],
    ['POST', '/constructor', false],
  ])('%s %s: %s', (method, url, isTaken) => {
    const { routes, taken } = routesFor();
    expect(routes.take(requestOf(method, url), response)).toBe(isTaken);
    expect(taken).toHaveLength(isTaken ? 1 : 0);
  });

  test('parses the query of each request', () => {
    const { routes, taken } = routesFor();
    for (const query of ['?v=2', '?v=2', '?v=1&v=3&a=%20b+c', '']) {
      routes.take(requestOf('POST', `/flags${query}`), response);
    }
    expect(taken.map((one) => ({ ...(one.query as object) }))).toEqual([
      { v: '2' },
      { v: '2' },
      { v: ['1', '3'], a: ' b c' },
      {},
    ]);
  });

  test('is left as soon as the server closes', () => {
    const { routes } = routesFor();
    routes.close();
    expect(routes.take(requestOf('POST', '/flags'), response)).toBe(false);
  });

  test.each([
    [[], undefined, '10.0.0.1'],
    [[], '192.0.2.1', '10.0.0.1'],
    [['10.0.0.0/8'], undefined, '10.0.0.1'],
    [['10.0.0.0/8'], '192.0.2.1', '192.0.2.1'],
    [['10.0.0.0/8'], '198.51.100.7, 192.0.2.1 , 10.1.1.1', '192.0.2.1'],
    [['10.0.0.0/8'], '10.2.2.2, 10.1.1.1', '10.2.2.2'],
  ])('behind the proxies %j, `X-Forwarded-For: %s` means %s', (proxies, forwarded, address) => {
    const { routes, taken } = routesFor(proxies);
    routes.take(requestOf('POST', '/flags', forwarded ? { 'x-forwarded-for': forwarded } : {}), response);
    expect(taken[0]?.ip).toBe(address);
  });
});
