import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll } from '@jest/globals';

/** What stands between the worker and the real server: passes on, or does harm. */
export type Harm = (request: IncomingMessage, response: ServerResponse, forward: () => void) => void;

export interface FaultProxy {
  /** Until the end of the test. */
  harm: Harm | undefined;
  /** What was asked during the test. */
  seen: { method: string; url: string; headers: http.IncomingHttpHeaders }[];
  /** Where the harm is. */
  endpoint: string;
}

/** Something in front of a server that speaks HTTP; passes everything on while no harm is set. */
export function faultProxyForFile(behind: () => string): FaultProxy {
  const proxy: FaultProxy = { harm: undefined, seen: [], endpoint: '' };
  const server = http.createServer((request, response) => {
    const { method = 'GET', url = '', headers } = request;
    proxy.seen.push({ method, url, headers });
    const forward = () => {
      const onward = http.request(behind() + url, { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
      });
      onward.on('error', () => response.destroy());
      // Whose client is gone before all of it came; the server would wait for the rest.
      const giveUp = () => void (request.complete || onward.destroy());
      request.on('close', giveUp);
      if (request.destroyed) giveUp();
      request.pipe(onward);
    };
    if (proxy.harm) proxy.harm(request, response, forward);
    else forward();
  });
  beforeAll(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    proxy.endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(() => {
    proxy.harm = undefined;
    proxy.seen = [];
  });
  afterAll(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return proxy;
}
