import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import net, { type AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createEgress, type Egress, type EgressOptions } from '../../egress/egress.ts';
import { EgressRefusedError, egressRefusal } from '../../egress/egress-refused.ts';
import type { NoAnswerError } from '../../egress/no-answer.ts';

// 127.0.0.2 stands for an address that may be reached, 127.0.0.1 for one that may not.
const OPEN = '127.0.0.2';
const CLOSED = '127.0.0.1';

let port = 0;
let connections: string[] = [];
let requests: http.IncomingMessage[] = [];
let answer: http.RequestListener = (_request, response) => response.end('here');
const server = http.createServer((request, response) => {
  requests.push(request);
  answer(request, response);
});
server.on('connection', (socket: net.Socket) => connections.push(socket.localAddress ?? ''));
const opened: Egress[] = [];

function egress(options: EgressOptions = { allow: OPEN }): Egress {
  const made = createEgress(options);
  opened.push(made);
  return made;
}

/** A resolver that gives each answer once, and the last one for ever. */
function resolver(...answers: string[][]) {
  const asked: string[] = [];
  return {
    asked,
    resolve: async (host: string) => {
      asked.push(host);
      const addresses = answers.length > 1 ? (answers.shift() as string[]) : (answers[0] as string[]);
      return addresses.map((address) => ({ address, family: net.isIP(address) }));
    },
  };
}

beforeAll(async () => {
  server.listen(0, '0.0.0.0');
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
});
beforeEach(() => {
  connections = [];
  requests = [];
  answer = (_request, response) => response.end('here');
});
afterAll(async () => {
  await Promise.all(opened.map((one) => one.close()));
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

describe('a large answer', () => {
  const LARGE = 'x'.repeat(1_000_000);

  test('is read when it may be, and stays with its sender until then', async () => {
    let isSent = false;
    answer = (_request, response) =>
      response.end(LARGE, () => {
        isSent = true;
      });
    const { promise, resolve } = Promise.withResolvers<void>();
    let asked = 0;
    const admit = () => {
      asked += 1;
      return promise;
    };
    let isRead = false;
    const reading = egress()
      .fetch(`http://${OPEN}:${port}/`, { admit })
      .then((got) => {
        isRead = true;
        return got;
      });
    while (asked === 0) await pause(5);
    // Others need nobody's leave, and pass it.
    answer = (_request, response) => response.end('little');
    for (let number = 0; number < 50; number += 1) {
      const little = await egress().fetch(`http://${OPEN}:${port}/`, { admit });
      expect(String(little.body)).toBe('little');
    }
    expect([isRead, asked]).toEqual([false, 1]);
    resolve();
    expect((await reading).body.length).toBe(LARGE.length);
    expect([isSent, asked]).toEqual([true, 1]);
  });

  test('that may not be read in time is no answer', async () => {
    answer = (_request, response) => response.end(LARGE);
    const reading = egress().fetch(`http://${OPEN}:${port}/`, {
      ...{ timeoutMilliseconds: 100, admit: () => new Promise<void>(() => undefined) },
    });
    await expect(reading).rejects.toThrow(/no answer from .* within 0.1 seconds/);
  });
});

/** What a request by node:http, by a socket like pg's, and by fetch comes to. */
const ways: [name: string, get: (from: Egress, host: string) => Promise<string>][] = [
  ['fetch', async (from, host) => (await from.fetch(`http://${host}:${port}/`)).body.toString()],
  [
    'the agents',
    async (from, host) => {
      const { httpAgent, destroy } = from.agents();
      const agents = { httpAgent, destroy };
      try {
        return await new Promise<string>((resolve, reject) => {
          http
            .get(
              { host: host.replace(/^\[|\]$/g, ''), port, path: '/', agent: agents.httpAgent },
              (response) => {
                let text = '';
                response.on('data', (chunk) => {
                  text += chunk;
                });
                response.on('end', () => resolve(text));
              },
            )
            .on('error', reject);
        });
      } finally {
        httpAgent.destroy();
      }
    },
  ],
  [
    'the socket',
    async (from, host) => {
      const socket = from.socket();
      socket.connect(port, host.replace(/^\[|\]$/g, ''));
      socket.write('GET / HTTP/1.0\r\n\r\n');
      let text = '';
      for await (const chunk of socket) text += chunk;
      return text.split('\r\n\r\n')[1] ?? '';
    },
  ],
];

async function refusal(work: Promise<unknown>): Promise<EgressRefusedError> {
  const error = await work.then(
    () => undefined,
    (reason) => reason,
  );
  const refused = egressRefusal(error);
  if (!refused) throw new Error(`expected a refusal, got ${error}`);
  return refused;
}

describe.each(ways)('%s', (_name, get) => {
  test('reaches an address that the operator allows', async () => {
    expect(await get(egress(), OPEN)).toBe('here');
    expect(connections).toEqual([OPEN]);
  });

  test('reaches a host that the operator allows, whatever its address', async () => {
    const { resolve } = resolver([CLOSED]);
    expect(await get(egress({ allow: 'inner.test', resolve }), 'inner.test')).toBe('here');
  });

  test.each([CLOSED, '[::1]', '[::ffff:127.0.0.1]', '169.254.169.254', '0.0.0.0'])(
    'refuses the address %s, which no look-up sees',
    async (host) => {
      const { resolve, asked } = resolver([OPEN]);
      const refused = await refusal(get(egress({ allow: OPEN, resolve }), host));
      expect(refused.message).toContain(refused.host);
      expect(asked).toEqual([]);
      expect(connections).toEqual([]);
    },
  );

  test('names host and address of what it refuses', async () => {
    const { resolve } = resolver([CLOSED]);
    const refused = await refusal(get(egress({ resolve }), 'evil.test'));
    expect(refused).toBeInstanceOf(EgressRefusedError);
    expect(refused).toMatchObject({ host: 'evil.test', address: CLOSED });
    expect(refused.message).toBe(
      'Connections to evil.test (127.0.0.1) are not allowed: the address is loopback. To allow the host or its network, list it in SLUICE_EGRESS_ALLOW',
    );
    expect(connections).toEqual([]);
  });

  test('refuses a host of which one address is refused', async () => {
    const { resolve } = resolver([OPEN, CLOSED]);
    expect(await refusal(get(egress({ allow: OPEN, resolve }), 'both.test'))).toMatchObject({
      address: CLOSED,
    });
    expect(connections).toEqual([]);
  });

  test('connects to the very address that was checked: a name is looked up once per connection', async () => {
    const { resolve, asked } = resolver([OPEN], [CLOSED]);
    const from = egress({ allow: OPEN, resolve });
    expect(await get(from, 'rebinding.test')).toBe('here');
    expect(asked).toEqual(['rebinding.test']);
    expect(connections).toEqual([OPEN]);
    // The connection that fetch keeps is closed by the server, so that the next request looks the name up again.
    server.closeAllConnections();
    await pause(10);
    const refused = await refusal(get(from, 'rebinding.test'));
    expect(refused.address).toBe(CLOSED);
    expect(connections).toEqual([OPEN]);
  });
});

test('decimal, octal and hexadecimal forms of an address are that address', async () => {
  for (const host of ['2130706433', '0x7f000001', '017700000001', '127.1', '0']) {
    await refusal(egress().fetch(`http://${host}:${port}/`));
    const socket = egress().socket();
    const failed = once(socket, 'error');
    socket.connect(port, host);
    expect(egressRefusal((await failed)[0])).toBeDefined();
  }
  expect(connections).toEqual([]);
});

test('no local sockets', async () => {
  const socket = egress({ allow: 'localhost' }).socket();
  const failed = once(socket, 'error');
  socket.connect('/tmp/.s.PGSQL.5432');
  expect(egressRefusal((await failed)[0])?.message).toContain('it is a local socket');
  const { httpAgent } = egress({ allow: 'localhost' }).agents();
  const error = await new Promise((resolve) => {
    try {
      http.get({ socketPath: '/tmp/socket', agent: httpAgent }).on('error', resolve);
    } catch (thrown) {
      resolve(thrown);
    }
  });
  expect(egressRefusal(error)?.message).toContain('it is a local socket');
});

test('a socket for what the operator named reaches nothing else, public or not', async () => {
  const { resolve } = resolver(['93.184.215.14']);
  const socket = egress({ allow: OPEN, resolve }).socket({ listedOnly: true });
  const failed = once(socket, 'error');
  socket.connect(port, 'public.test');
  expect(egressRefusal((await failed)[0])?.message).toContain('SLUICE_EGRESS_ALLOW does not list it');
});

describe('redirects', () => {
  const redirectTo =
    (location: string, status = 302): http.RequestListener =>
    (request, response) => {
      if (request.url === '/start') response.writeHead(status, { location }).end();
      else response.end('moved here');
    };

  test('are answers unless asked for', async () => {
    answer = redirectTo('/elsewhere');
    const { status, headers } = await egress().fetch(`http://${OPEN}:${port}/start`);
    expect({ status, location: headers.location }).toEqual({ status: 302, location: '/elsewhere' });
  });

  test('are followed as often as asked for', async () => {
    answer = redirectTo('/elsewhere');
    const found = await egress().fetch(`http://${OPEN}:${port}/start`, { redirects: 1 });
    expect(found.body.toString()).toBe('moved here');
    answer = redirectTo('/start');
    expect((await egress().fetch(`http://${OPEN}:${port}/start`, { redirects: 3 })).status).toBe(302);
    expect(requests).toHaveLength(2 + 4);
  });

  test.each([
    `http://${CLOSED}:1/`,
    'http://169.254.169.254/latest/meta-data/',
    'file:///etc/passwd',
    'http://[::1]/',
  ])('to %s are refused', async (location) => {
    answer = redirectTo(location);
    await refusal(egress().fetch(`http://${OPEN}:${port}/start`, { redirects: 5 }));
    expect(connections).toEqual([OPEN]);
  });

  test('to a host whose name leads inside are refused', async () => {
    answer = redirectTo(`http://inner.test:${port}/`);
    const resolve = async (host: string) => [{ address: host === 'outer.test' ? OPEN : CLOSED, family: 4 }];
    const refused = await refusal(
      egress({ allow: OPEN, resolve }).fetch(`http://outer.test:${port}/start`, { redirects: 5 }),
    );
    expect(refused).toMatchObject({ host: 'inner.test', address: CLOSED });
  });

  test('to another origin do not carry secrets, and a 303 carries no body', async () => {
    answer = redirectTo(`http://other.test:${port}/next`, 303);
    const resolve = async () => [{ address: OPEN, family: 4 }];
    await egress({ allow: OPEN, resolve }).fetch(`http://outer.test:${port}/start`, {
      method: 'POST',
      body: '{}',
      headers: {
        authorization: 'Bearer secret',
        cookie: 'a=b',
        'content-type': 'application/json',
        'x-token-of-somebody': 'secret',
        accept: 'text/plain',
      },
      redirects: 1,
    });
    const [first, second] = requests as [http.IncomingMessage, http.IncomingMessage];
    expect(first.headers).toMatchObject({ authorization: 'Bearer secret', cookie: 'a=b' });
    expect(second.method).toBe('GET');
    expect(second.headers).toMatchObject({ accept: 'text/plain' });
    for (const name of ['authorization', 'cookie', 'content-type', 'x-token-of-somebody'])
      expect(second.headers).not.toHaveProperty(name);
  });

  test('a 307 to another origin does not get the body: the redirect is the answer', async () => {
    answer = redirectTo(`http://other.test:${port}/next`, 307);
    const resolve = async () => [{ address: OPEN, family: 4 }];
    const { status } = await egress({ allow: OPEN, resolve }).fetch(`http://outer.test:${port}/start`, {
      method: 'POST',
      body: '{"api_key":"secret"}',
      redirects: 3,
    });
    expect(status).toBe(307);
    expect(requests.map(({ url }) => url)).toEqual(['/start']);
  });

  test('a 307 sends the body again', async () => {
    const bodies: string[] = [];
    answer = async (request, response) => {
      let text = '';
      for await (const chunk of request) text += chunk;
      bodies.push(`${request.method} ${text}`);
      redirectTo('/next', 307)(request, response);
    };
    await egress().fetch(`http://${OPEN}:${port}/start`, { method: 'POST', body: 'again', redirects: 1 });
    expect(bodies).toEqual(['POST again', 'POST again']);
  });
});

test('an answer that never comes, or never ends, ends in time', async () => {
  answer = () => undefined;
  const silent = egress().fetch(`http://${OPEN}:${port}/`, { timeoutMilliseconds: 50 });
  await expect(silent).rejects.toMatchObject({ code: 'ETIMEDOUT' } satisfies Partial<NoAnswerError>);
  answer = (_request, response) => void response.write('begun');
  const endless = egress().fetch(`http://${OPEN}:${port}/`, { timeoutMilliseconds: 50 });
  await expect(endless).rejects.toMatchObject({ code: 'ETIMEDOUT' });
  // Something moves all the time, and the request is limited as a whole.
  answer = (_request, response) => {
    const trickle = setInterval(() => response.write('.'), 5);
    response.on('close', () => clearInterval(trickle));
  };
  const trickling = egress().fetch(`http://${OPEN}:${port}/`, { timeoutMilliseconds: 200 });
  await expect(trickling).rejects.toMatchObject({ code: 'ETIMEDOUT' });
});

test('the rest of a long answer is not read', async () => {
  answer = (_request, response) => {
    const more = () => {
      while (!response.destroyed && response.write(Buffer.alloc(65_536, 'x')));
    };
    response.on('drain', more);
    more();
  };
  const { body, truncated } = await egress().fetch(`http://${OPEN}:${port}/`, { maxAnswerBytes: 100_001 });
  expect({ length: body.length, truncated }).toEqual({ length: 100_001, truncated: true });
});

test('the caller can end a request', async () => {
  answer = () => undefined;
  const controller = new AbortController();
  const work = egress().fetch(`http://${OPEN}:${port}/`, { signal: controller.signal });
  controller.abort(new Error('no longer wanted'));
  await expect(work).rejects.toThrow('no longer wanted');
});

test('an address with a password is refused without showing it', async () => {
  const refused = await refusal(egress().fetch(`http://user:hunter2@${OPEN}:${port}/`));
  expect(refused.message).not.toContain('hunter2');
});

describe('a server that takes connections and does not go on', () => {
  const sockets = new Set<net.Socket>();
  const silent = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    // The beginning of a TLS record of 16 KB, one byte after the other, without end.
    const bytes = Buffer.concat([Buffer.from('1603034000', 'hex'), Buffer.alloc(16_384, 2)]);
    let at = 0;
    const trickle = setInterval(() => socket.write(bytes.subarray(at, ++at)), 5);
    socket.on('close', () => clearInterval(trickle));
  });
  let silentPort = 0;
  beforeAll(async () => {
    silent.listen(0, OPEN);
    await once(silent, 'listening');
    silentPort = (silent.address() as AddressInfo).port;
  });
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => silent.close(resolve));
  });
  const hasty = (more: EgressOptions = {}) => egress({ allow: OPEN, connectMilliseconds: 200, ...more });
  const saying = { code: 'ETIMEDOUT', message: expect.stringContaining('within 0.2 seconds') };

  test('a TLS handshake that trickles ends: fetch', async () => {
    const work = hasty().fetch(`https://${OPEN}:${silentPort}/`);
    await expect(work).rejects.toMatchObject({
      ...saying,
      message: `cannot connect to ${OPEN}:${silentPort}: no answer within 0.2 seconds`,
    });
  });

  test('a TLS handshake that trickles ends: the agents', async () => {
    const { httpsAgent } = hasty().agents();
    const failed = new Promise((resolve) => {
      https.get({ host: OPEN, port: silentPort, agent: httpsAgent }).on('error', resolve);
    });
    expect(await failed).toMatchObject(saying);
    httpsAgent.destroy();
  });

  test('a name that is looked up for ever ends: all of them', async () => {
    const from = hasty({ allow: '', resolve: () => new Promise(() => undefined) });
    await expect(from.fetch('http://slow.test/')).rejects.toMatchObject(saying);
    const socket = from.socket();
    const failed = once(socket, 'error');
    socket.connect(80, 'slow.test');
    expect((await failed)[0]).toMatchObject(saying);
    const { httpAgent } = from.agents();
    const asked = new Promise((resolve) => {
      http.get({ host: 'slow.test', port: 80, agent: httpAgent }).on('error', resolve);
    });
    expect(await asked).toMatchObject(saying);
    httpAgent.destroy();
  });

  test('a connection on which nothing moves ends, whatever the request may take', async () => {
    answer = () => undefined;
    const work = egress({ allow: OPEN, idleMilliseconds: 100 }).fetch(`http://${OPEN}:${port}/`);
    await expect(work).rejects.toMatchObject({
      code: 'ETIMEDOUT',
      message: `${OPEN}:${port} was silent for 0.1 seconds`,
    });
  });
});
