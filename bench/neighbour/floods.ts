// Harm by amount: bodies that unfold, connections that wait, keys that nobody has, more events than can be stored.
import { randomBytes, randomUUID } from 'node:crypto';
import net from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import zlib from 'node:zlib';
import type { Ask, Client } from './http.ts';
import type { Means } from './misbehave.ts';

const LARGEST = 20_971_520;
const IDLE_CONNECTIONS = 500;
const TRICKLING_CONNECTIONS = 500;
const TRICKLE_MILLISECONDS = 1_000;

const event = (properties: object) => ({
  event: 'flood',
  distinct_id: 'flood',
  uuid: randomUUID(),
  properties,
});

/** JSON of nearly the largest size. `filling` is repeated within the properties of one event. */
function oneEvent(token: string, open: string, filling: string, close: string): Buffer {
  const head = `{"api_key":"${token}","event":"flood","distinct_id":"flood","properties":{"filling":${open}`;
  const tail = `${close}}}`;
  const count = Math.floor((LARGEST - head.length - tail.length) / filling.length) - 1;
  return Buffer.from(head + filling.repeat(count) + filling.replace(/,$/, '') + tail);
}

function manyEvents(token: string, padding: number): Buffer {
  const one = JSON.stringify(event({ padding: 'x'.repeat(padding) }));
  const count = Math.min(99_000, Math.floor((LARGEST - 100) / (one.length + 1)));
  const events = Array.from({ length: count }, () => JSON.stringify(event({ padding: 'x'.repeat(padding) })));
  return Buffer.from(`{"api_key":"${token}","batch":[${events.join(',')}]}`);
}

/** Bodies of some kilobytes that become 20 MB, or nearly more. */
function bombs(token: string): Record<string, Ask> {
  const fast = { level: 1 };
  const post = (encoding: string, body: Buffer): Ask => ({
    ...{ method: 'POST', path: '/i/v0/e/', body },
    headers: { 'content-type': 'application/json', 'content-encoding': encoding },
  });
  const lists = oneEvent(token, '[', '[],', ']');
  return {
    'bomb: one text': post('gzip', zlib.gzipSync(oneEvent(token, '"', 'abcdefgh', '"'), fast)),
    'bomb: lists': post('gzip', zlib.gzipSync(lists, fast)),
    'bomb: lists, br': post(
      'br',
      zlib.brotliCompressSync(lists, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } }),
    ),
    'bomb: numbers': post(
      'deflate',
      zlib.deflateSync(oneEvent(token, '[', '12345678901234567890,', ']'), fast),
    ),
    'bomb: escapes': post('gzip', zlib.gzipSync(oneEvent(token, '"', '\\u0000', '"'), fast)),
    'bomb: chain of elements': post(
      'gzip',
      zlib.gzipSync(
        Buffer.from(JSON.stringify({ api_key: token, ...event({ $elements_chain: 'a;'.repeat(1e6) }) })),
        fast,
      ),
    ),
    'bomb: many events': post('zstd', zlib.zstdCompressSync(manyEvents(token, 500))),
    'bomb: tiny events': post('gzip', zlib.gzipSync(manyEvents(token, 0), fast)),
    'bomb: too large': post('gzip', zlib.gzipSync(Buffer.alloc(300 * 1024 * 1024, '['), fast)),
    'bomb: base64': post('gzip', zlib.gzipSync(Buffer.alloc(LARGEST - 4, 'YWFh'), fast)),
    'bomb: NaN': post('gzip', zlib.gzipSync(oneEvent(token, '[', 'NaN,', ']'), fast)),
  };
}

/** Opens connections that send nothing, or a letter a second of a request that does not end. */
async function hold(
  port: number,
  localAddress: string,
  trickles: boolean,
  isOver: () => boolean,
): Promise<void> {
  while (!isOver()) {
    const socket = net.connect({ port, host: '127.0.0.1', localAddress });
    const gone = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => undefined);
    if (trickles) {
      socket.write(
        'POST /batch/ HTTP/1.1\r\nhost: sluice\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n',
      );
      const timer = setInterval(() => socket.write('['), TRICKLE_MILLISECONDS);
      socket.once('close', () => clearInterval(timer));
    }
    socket.resume();
    await gone;
    await pause(TRICKLE_MILLISECONDS);
  }
}

export async function floods({ port, tenant, own, strangers, isOver, keepAsking }: Means): Promise<void> {
  const stranger = () => strangers[Math.floor(Math.random() * strangers.length)] as Client;
  const random = (prefix: string) => `${prefix}_${randomBytes(24).toString('hex')}`;
  const small = (token: string): Ask => ({
    ...{ method: 'POST', path: '/i/v0/e/', headers: { 'content-type': 'application/json' } },
    body: JSON.stringify({ api_key: token, ...event({ padding: 'x'.repeat(300) }) }),
  });
  const read = (key: string, path: string): Ask => ({ path, headers: { authorization: `Bearer ${key}` } });
  const { projectId, token, key } = tenant;
  for (let n = 0; n < IDLE_CONNECTIONS + TRICKLING_CONNECTIONS; n += 1) {
    void hold(port, `127.0.1.${1 + (n % 4)}`, n < TRICKLING_CONNECTIONS, isOver);
  }
  await Promise.all([
    ...Object.entries(bombs(token)).map(([kind, ask]) => keepAsking(kind, 1, () => ask)),
    ...strangers.map((one) =>
      keepAsking('personal keys of nobody', 4, () => read(random('phx'), '/api/users/@me/'), one),
    ),
    ...strangers.map((one) => keepAsking('project keys of nobody', 4, () => small(random('phc')), one)),
    keepAsking('no such path', 4, () => ({ path: `/${random('x')}` }), stranger()),
    keepAsking('foreign project', 8, () => read(key, `/api/projects/${projectId + 1}/batch_exports/`)),
    keepAsking('small captures', 256, () => small(token), own),
  ]);
}
