import { randomBytes } from 'node:crypto';
import {
  brotliCompressSync,
  constants,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import LZString from 'lz-string';
import { checkToken } from '../../api/public/project-keys.ts';
import { decodeBody, type WireBody } from '../../capture/decode/decode.ts';
import { readLargeJson } from '../../capture/decode/json.ts';
import { MAX_BODY_BYTES, MAX_VALUES, ONE_GO } from '../../capture/decode/limits.ts';
import { decompressLz64 } from '../../capture/decode/lz64.ts';
import { parseEvents } from '../../capture/parse/parse.ts';
import { turnsDuring } from '../support/loop.ts';
import { rounds } from '../support/rounds.ts';

const EVENT = { api_key: 'phc_a', event: 'käufe 😀', distinct_id: 'u?>~', properties: { a: [1, 2] } };
const JSON_TEXT = JSON.stringify(EVENT);
const BASE64 = Buffer.from(JSON_TEXT).toString('base64');
const GZIP = gzipSync(JSON_TEXT);
const FORM = 'application/x-www-form-urlencoded';
/** Brotli writes bodies of 64 KiB to 1 MiB so that they begin with a bracket. */
const MIDDLE = JSON.stringify({ ...EVENT, properties: { a: randomBytes(60_000).toString('hex') } });

type Compress = (bytes: Buffer | string) => Buffer;
const ENCODINGS: [string, string, Compress][] = [
  ['gzip', 'gzip', gzipSync],
  ['deflate with the header of zlib', 'deflate', deflateSync],
  ['bare deflate', 'deflate', deflateRawSync],
  ['deflate that is only stored', 'deflate', (body) => deflateRawSync(body, { level: 0 })],
  ['br', 'br', (body) => brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } })],
  [
    'br of the largest window',
    'br',
    (body) =>
      brotliCompressSync(body, {
        params: { [constants.BROTLI_PARAM_QUALITY]: 4, [constants.BROTLI_PARAM_LGWIN]: 24 },
      }),
  ],
  ['zstd', 'zstd', zstdCompressSync],
  [
    'zstd with a checksum',
    'zstd',
    (body) => zstdCompressSync(body, { params: { [constants.ZSTD_c_checksumFlag]: 1 } }),
  ],
];
const bytes = (text: string) => Buffer.from(text);

describe('every wire form holds the same event', () => {
  const forms: [string, WireBody][] = [
    ['plain JSON', { bytes: bytes(JSON_TEXT), contentType: 'application/json' }],
    ['text/plain', { bytes: bytes(JSON_TEXT), contentType: 'text/plain' }],
    ['no content type, white space around', { bytes: bytes(`\n ${JSON_TEXT} `) }],
    ['a byte order mark', { bytes: bytes(`\ufeff${JSON_TEXT}`) }],
    ['base64, visible', { bytes: bytes(BASE64), contentType: 'text/plain' }],
    ['base64, declared by the query', { bytes: bytes(BASE64), compression: 'base64' }],
    [
      'base64 of the URL alphabet without padding',
      { bytes: bytes(Buffer.from(JSON_TEXT).toString('base64url')), compression: 'b64' },
    ],
    ['a form of JSON', { bytes: bytes(`data=${encodeURIComponent(JSON_TEXT)}`), contentType: FORM }],
    [
      'a form of base64',
      { bytes: bytes(`data=${encodeURIComponent(BASE64)}`), contentType: FORM, compression: 'base64' },
    ],
    [
      'a form of base64 that nobody escaped',
      { bytes: bytes(`compression=base64&data=${BASE64}`), contentType: `${FORM}; charset=UTF-8` },
    ],
    ['a query of base64', { bytes: bytes(''), data: BASE64.replaceAll('+', ' '), compression: 'base64' }],
    ['a query of JSON', { bytes: bytes(''), data: JSON_TEXT }],
    ['gzip, declared by the header', { bytes: GZIP, contentEncoding: 'gzip' }],
    ['gzip, declared by the query', { bytes: GZIP, compression: 'gzip-js', contentType: 'text/plain' }],
    ['gzip, visible by its first bytes only', { bytes: GZIP, contentType: 'text/plain' }],
    ['gzip under the content type of a form', { bytes: GZIP, contentType: FORM }],
    ['gzip of gzip', { bytes: gzipSync(GZIP), contentEncoding: 'gzip', compression: 'gzip-js' }],
    ['base64 of gzip', { bytes: bytes(GZIP.toString('base64')), compression: 'gzip' }],
    ['gzip of base64', { bytes: gzipSync(BASE64), contentEncoding: 'gzip' }],
    ['JSON that a proxy has decompressed', { bytes: bytes(JSON_TEXT), contentEncoding: 'gzip' }],
    [
      'lz64, declared behind a name that every object knows',
      {
        bytes: bytes(LZString.compressToBase64(JSON_TEXT)),
        compression: 'constructor',
        contentEncoding: 'lz64',
      },
    ],
    ['an unknown encoding of what is JSON', { bytes: bytes(JSON_TEXT), contentEncoding: 'identity' }],
    [
      'lz64, declared by the query',
      { bytes: bytes(LZString.compressToBase64(JSON_TEXT)), compression: 'lz64' },
    ],
    [
      'lz64 in a form',
      { bytes: bytes(`data=${LZString.compressToBase64(JSON_TEXT)}&compression=lz64`), contentType: FORM },
    ],
    ['data as text', { bytes: bytes(JSON.stringify({ data: JSON_TEXT })) }],
    ['data as base64', { bytes: bytes(JSON.stringify({ data: BASE64, compression: 'base64' })) }],
  ];
  test.each(forms)('%s', async (_name, wire) => {
    expect((await decodeBody(wire)).root).toEqual(EVENT);
  });
});

describe.each(ENCODINGS)('%s', (_name, encoding, compress) => {
  const small = compress(JSON_TEXT);
  const middle = compress(MIDDLE);
  const form = `data=${encodeURIComponent(JSON_TEXT)}&api_key=phc_form`;
  const forms: [string, WireBody][] = [
    ['declared by the header', { bytes: small, contentEncoding: encoding, contentType: 'application/json' }],
    ['declared by the query', { bytes: small, compression: encoding.toUpperCase() }],
    ['declared by both', { bytes: small, contentEncoding: ` ${encoding} `, compression: encoding }],
    ['of 120 kB', { bytes: middle, contentEncoding: encoding }],
    ['inside of br', { bytes: brotliCompressSync(small), contentEncoding: `${encoding}, br` }],
    ['around gzip', { bytes: compress(GZIP), contentEncoding: `gzip, ${encoding}` }],
    [
      'around gzip that only the query names',
      { bytes: compress(GZIP), contentEncoding: encoding, compression: 'gzip-js' },
    ],
    [
      'around base64 that the query names',
      { bytes: compress(BASE64), contentEncoding: encoding, compression: 'base64' },
    ],
    ['declared twice, made once', { bytes: small, contentEncoding: `${encoding}, ${encoding}` }],
    ['beside identity', { bytes: small, contentEncoding: `identity,${encoding}` }],
    ['removed by a proxy that kept the header', { bytes: bytes(JSON_TEXT), contentEncoding: encoding }],
    ['removed, and 120 kB', { bytes: bytes(MIDDLE), contentEncoding: encoding }],
    ['removed, and the list begins', { bytes: bytes(`[${JSON_TEXT}]`), contentEncoding: encoding }],
    ['declared, and gzip in truth', { bytes: GZIP, contentEncoding: encoding }],
    ['of a whole form', { bytes: compress(form), contentEncoding: encoding, contentType: FORM }],
    ['under the type of a form', { bytes: small, contentEncoding: encoding, contentType: FORM }],
    [
      'as base64 in a form',
      {
        bytes: bytes(`data=${encodeURIComponent(small.toString('base64'))}&compression=${encoding}`),
        contentType: FORM,
      },
    ],
    ['as base64 in the query', { bytes: bytes(''), data: small.toString('base64'), compression: encoding }],
    [
      'as base64 in the field data',
      { bytes: bytes(JSON.stringify({ data: small.toString('base64'), compression: encoding })) },
    ],
  ];
  test.each(forms)('%s', async (_case, wire) => {
    const { root } = await decodeBody(wire);
    const event = (Array.isArray(root) ? root[0] : root) as typeof EVENT;
    expect({ ...event, properties: EVENT.properties }).toEqual(EVENT);
  });

  test('of every length is never taken for something else', async () => {
    for (let length = 0; length < 400; length += rounds(3, 1)) {
      const value = { text: 'x'.repeat(length), random: randomBytes(length).toString('base64') };
      const wire = { bytes: compress(JSON.stringify(value)), contentEncoding: encoding };
      expect((await decodeBody(wire)).root).toEqual(value);
    }
  });

  test.each([
    ['the end is missing', small.subarray(0, -3), 'unexpected end of file'],
    ['the end is missing, 120 kB', middle.subarray(0, -3), 'unexpected end of file'],
    ['nothing of it is there', bytes('\u0007hello there'), ''],
    [
      'something follows',
      Buffer.concat([small, bytes('xyz')]),
      encoding === 'gzip' ? 'incorrect header check' : '3 bytes follow its end',
    ],
  ])('%s', async (_case, body, why) => {
    const failure = await decodeBody({ bytes: body, contentEncoding: encoding }).catch((error) => error);
    expect(failure).toMatchObject({ name: 'DecodeError', status: 400, reason: `invalid_${encoding}` });
    expect(failure.message).toContain(why);
  });
});

/** A frame of zstd that asks for a window of so many bytes, as a power of two. */
const zstdOf = (windowLog: number) =>
  Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, (windowLog - 10) << 3, 0x13, 0x00, 0x00, 0x7b, 0x7d]);

describe('what cannot be decoded is named', () => {
  const cases: [string, WireBody, string][] = [
    ['nothing', { bytes: bytes('') }, 'request missing data payload'],
    ['an empty field', { bytes: bytes('data='), contentType: FORM }, 'request missing data payload'],
    ['truncated gzip', { bytes: GZIP.subarray(0, 30) }, 'invalid GZIP data'],
    [
      'declared gzip that is none',
      { bytes: bytes('\u0001\u0002'), contentEncoding: 'gzip' },
      'declared as gzip',
    ],
    ['JSON under the type of a form', { bytes: bytes(JSON_TEXT), contentType: FORM }, 'expected form data'],
    ['bad base64', { bytes: bytes('%%%%'), compression: 'base64' }, 'invalid base64 data'],
    ['bad lz64', { bytes: bytes('%%%%'), compression: 'lz64' }, 'invalid lz64 data'],
    [
      'an unknown encoding',
      { bytes: deflateRawSync(JSON_TEXT), contentEncoding: 'identity, lz4' },
      'Content-Encoding "lz4" is not known; send gzip, deflate, br or zstd, or no compression',
    ],
    [
      'more encodings than anybody makes',
      { bytes: GZIP, contentEncoding: 'gzip, br, gzip, br, gzip' },
      'Content-Encoding names 5 encodings, at most 4 are accepted',
    ],
    [
      'a list of encodings around something else',
      { bytes: brotliCompressSync(GZIP.subarray(0, 30)), contentEncoding: 'gzip, br' },
      'invalid GZIP data',
    ],
    [
      'a window of zstd that needs much memory',
      { bytes: zstdOf(27), contentEncoding: 'zstd' },
      'too much memory',
    ],
    ['half of a JSON', { bytes: bytes('{"event":') }, 'not valid JSON'],
    ['words', { bytes: bytes('hello there') }, 'starts with "hello there"'],
    [
      'deep JSON',
      { bytes: bytes(`{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`) },
      'nests 100001 levels deep',
    ],
  ];
  test.each(cases)('%s', async (_name, wire, message) => {
    const failure = await decodeBody(wire).catch((error) => error);
    expect(failure).toMatchObject({ name: 'DecodeError', status: 400 });
    expect(failure.message).toContain(message);
  });
});

test('bytes that are no UTF-8 become U+FFFD, and that is told', async () => {
  const wire = Buffer.concat([
    bytes('{"api_key":"k","event":"e","distinct_id":"u","properties":{"a":"x'),
    Buffer.from([0xff, 0xc0]),
    bytes('"}}'),
  ]);
  const decoded = await decodeBody({ bytes: wire });
  const parsed = await parseEvents(decoded, { now: 0, ip: undefined, newUuid: () => '', checkToken });
  expect(parsed.events[0]?.properties).toEqual({ a: 'x\ufffd\ufffd' });
  expect(parsed.notices.counts.get('invalid_utf8_replaced')?.count).toBe(1);
});

/** One letter, then only codes that mean "the text before, and its first letter": each is one longer. */
function lz64Bomb(codes: number): string {
  const bits: number[] = [];
  const write = (value: number, width: number) => {
    for (let bit = 0; bit < width; bit += 1) bits.push((value >> bit) & 1);
  };
  write(0, 2);
  write(0x61, 8);
  let width = 3;
  let untilWider = 4;
  for (let code = 0; code < codes; code += 1) {
    write(4 + code, width);
    untilWider -= 1;
    if (untilWider === 0) {
      untilWider = 2 ** width;
      width += 1;
    }
  }
  write(2, width);
  const letters: string[] = [];
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  for (let index = 0; index < bits.length; index += 6) {
    const six = [0, 1, 2, 3, 4, 5].reduce((sum, bit) => sum * 2 + (bits[index + bit] ?? 0), 0);
    letters.push(alphabet[six] as string);
  }
  return letters.join('');
}

describe('the limit of 20 MiB', () => {
  const body = (size: number) => {
    const frame = '{"a":""}';
    return bytes(`{"a":"${'x'.repeat(size - frame.length)}"}`);
  };
  test.each([-1, 0])('%i bytes from it are accepted, plain and compressed', async (by) => {
    const exact = body(MAX_BODY_BYTES + by);
    expect(exact.length).toBe(MAX_BODY_BYTES + by);
    expect((await decodeBody({ bytes: exact })).root).toHaveProperty('a');
    expect((await decodeBody({ bytes: gzipSync(exact, { level: 1 }) })).root).toHaveProperty('a');
  });
  test('one byte more is refused, plain and compressed', async () => {
    const over = body(MAX_BODY_BYTES + 1);
    await expect(decodeBody({ bytes: over })).rejects.toMatchObject({ status: 413 });
    await expect(decodeBody({ bytes: gzipSync(over, { level: 1 }) })).rejects.toMatchObject({ status: 413 });
  });
  test.each(ENCODINGS.filter(([name, encoding]) => name === encoding || name.includes('deflate')))(
    '%s: the last byte decides',
    async (_name, encoding, compress) => {
      const send = (one: Buffer) => decodeBody({ bytes: compress(one), contentEncoding: encoding });
      expect((await send(body(MAX_BODY_BYTES))).root).toHaveProperty('a');
      const refusal = { status: 413, reason: 'body_too_large' };
      await expect(send(body(MAX_BODY_BYTES + 1))).rejects.toMatchObject(refusal);
    },
  );
  test('a bomb in a bomb is refused', async () => {
    const inner = brotliCompressSync(Buffer.alloc(50 * 1024 * 1024), {
      params: { [constants.BROTLI_PARAM_QUALITY]: 1 },
    });
    for (const [, encoding, compress] of ENCODINGS) {
      const wire = { bytes: compress(inner), contentEncoding: `br, ${encoding}` };
      await expect(decodeBody(wire)).rejects.toMatchObject({ status: 413 });
    }
  });
  test('bombs are refused: gzip and lz64', async () => {
    const zeros = gzipSync(Buffer.alloc(50 * 1024 * 1024), { level: 9 });
    expect(zeros.length).toBeLessThan(60_000);
    await expect(decodeBody({ bytes: zeros })).rejects.toMatchObject({ status: 413 });
    const letters = lz64Bomb(7_000);
    expect(letters.length).toBeLessThan(20_000);
    expect((await decompressLz64(bytes(lz64Bomb(3)))).length).toBe(1 + 2 + 3 + 4);
    await expect(decodeBody({ bytes: bytes(letters), compression: 'lz64' })).rejects.toMatchObject({
      status: 413,
    });
  });
});

test('lz64 is what the library writes', async () => {
  let state = 7;
  const next = (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state % below;
  };
  for (let round = 0; round < 200; round += 1) {
    const range = [3, 90, 60_000][round % 3] as number;
    const text = Array.from({ length: next(400) }, () => String.fromCharCode(32 + next(range))).join('');
    expect(await decompressLz64(bytes(LZString.compressToBase64(text)))).toBe(text);
  }
});

describe('a body read event by event', () => {
  const read = async (text: string) => {
    const decoded = await readLargeJson(text, false);
    const values: unknown[] = [];
    for await (const chunk of decoded.chunks?.() ?? []) values.push(...chunk.values);
    return { root: decoded.root, values };
  };
  const texts = [
    '[]',
    '[ ]',
    '[{"a":"]"},{"b":"\\"}"} , 3, "x,y"]',
    '{"batch":[],"a":1}',
    '{"a":{"batch":[1]},"batch":[{"batch":[2]}],"b":["batch"]}',
    '{"a":"batch","batch" : [ {"x":"\\\\"} , null ] , "sent_at":"t"}',
    '{"batch":[1],"batch":[2,3]}',
    '{"data":{"batch":[1]}}',
  ];
  test.each(texts)('%s', async (text) => {
    const whole = JSON.parse(text);
    const { root, values } = await read(text);
    const isList = Array.isArray(whole);
    expect(isList ? values : values).toEqual(isList ? whole : (whole.batch ?? []));
    expect(root).toEqual(isList ? [] : whole.batch ? { ...whole, batch: [] } : whole);
  });
  test.each(['[1,]', '[,1]', '{"batch":[1}', '{"batch":[{"a":1]]}', '[1', '[1]]', '{"batch":[1]', '["a'])(
    '%s is as wrong as for JSON.parse',
    async (text) => {
      expect(() => JSON.parse(text)).toThrow();
      await expect(read(text)).rejects.toMatchObject({ name: 'DecodeError', status: 400 });
    },
  );
  test('a number that is none costs no neighbour, in a large body either', async () => {
    const text = `[1,{"a":NaN,"b":"${'x'.repeat(1_000)}"},${'["NaN"],'.repeat(80_000)}2]`;
    const { values } = await read(text);
    expect(values.slice(0, 3)).toEqual([1, { a: null, b: 'x'.repeat(1_000) }, ['NaN']]);
    expect(values.length).toBe(80_003);
  });
  test('an event that nests too deep is left out, its neighbours are not', async () => {
    const deep = (levels: number) =>
      `{"event":"d${levels}","distinct_id":"u","properties":${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}}`;
    const text = `{"api_key":"k","batch":[${deep(100)},${deep(100_000)},${deep(199)},${deep(200)}]}`;
    const decoded = await decodeBody({ bytes: bytes(text) });
    const parsed = await parseEvents(decoded, { now: 0, ip: undefined, newUuid: () => '', checkToken });
    expect(parsed.events.map((event) => event.event)).toEqual(['d100', 'd199']);
    expect(parsed.notices.skipped.map(({ index, reason }) => [index, reason])).toEqual([
      [1, 'nested_too_deep'],
      [3, 'nested_too_deep'],
    ]);
  });
});

describe('a small body is read in one go', () => {
  const read = async (text: string) => (await decodeBody({ bytes: bytes(text) })).root;
  const nested = (levels: number) => `${'['.repeat(levels)}1e400${']'.repeat(levels)}`;

  test.each([
    ['{"a":[9007199254740993,1],"b":{"c":-1e400}}', { a: ['9007199254740993', 1], b: { c: '-1e400' } }],
    ['{"a":9007199254740991,"b":-9007199254740991}', { a: 9007199254740991, b: -9007199254740991 }],
    ['{"a":1e300,"b":0.1234567890123456789}', { a: 1e300, b: 0.12345678901234568 }],
    ['{"a":"12345678901234567890","b":null,"c":true}', { a: '12345678901234567890', b: null, c: true }],
    [
      '{"a":NaN,"b":[Infinity,-Infinity],"NaN":"NaN, \\"Infinity","c":1e400}',
      { a: null, b: [null, null], NaN: 'NaN, "Infinity', c: '1e400' },
    ],
    ['{"é":"ü","n":12345678901234567890}', { é: 'ü', n: '12345678901234567890' }],
  ])('with its numbers exact: %s', async (text, value) => {
    expect(await read(text)).toEqual(value);
  });

  test.each(['{"a":NaN1}', '{"a":xNaN}', '{"a":NaN', '{"a":--Infinity}', '{"a":"NaN', '{NaN:1,}'])(
    '%s is not JSON for all that',
    async (text) => {
      await expect(read(text)).rejects.toMatchObject({ name: 'DecodeError', status: 400 });
    },
  );

  test('a key called __proto__ hides nothing', async () => {
    const root = (await read('{"__proto__":{"n":9007199254740993}}')) as object;
    expect(Object.getOwnPropertyDescriptor(root, '__proto__')?.value).toEqual({ n: '9007199254740993' });
  });

  test('as deep as is accepted, and no deeper', async () => {
    expect(JSON.stringify(await read(`{"a":${nested(199)}}`))).toContain('"1e400"');
    await expect(read(`{"a":${nested(200)}}`)).rejects.toThrow('nests 201 levels deep, at most 200');
    const parsed = await parseEvents(
      await decodeBody({
        bytes: bytes(
          `{"api_key":"phc_a","batch":[{"event":"e","distinct_id":"u"},{"event":"e","distinct_id":"u","p":${nested(200)}}]}`,
        ),
      }),
      { now: 0, ip: undefined, newUuid: () => 'x', checkToken },
    );
    expect([parsed.events.length, parsed.notices.skipped]).toMatchObject([
      1,
      [{ reason: 'nested_too_deep' }],
    ]);
  });
});

describe('a large body', () => {
  const context = { now: 0, ip: undefined, newUuid: () => '', checkToken };
  const lists = (count: number) => `[${'[],'.repeat(count - 1)}[]]`;
  const event = (name: string, properties: string) =>
    `{"event":"${name}","distinct_id":"u","properties":${properties}}`;

  test('of an event with too many values is refused, whatever the values are', async () => {
    for (const value of ['[]', '{}', '1', 'NaN', '12345678901234567890', '{"a":"b","c":[1]}']) {
      const text = `{"api_key":"k","event":"e","properties":{"a":[${`${value},`.repeat(MAX_VALUES)}1]}}`;
      await expect(decodeBody({ bytes: bytes(text) })).rejects.toThrow(
        /the body has about \d+ values, at most 262144 are accepted in one event/,
      );
    }
  });

  test('leaves out the events that have too many values, and no others', async () => {
    const many = event('many', `{"a":${lists(MAX_VALUES)}}`);
    const fewer = event('fewer', `{"a":${lists(MAX_VALUES / 4)}}`);
    const text = `{"api_key":"k","batch":[${fewer},${many},${event('last', '{}')}],"sent_at":null}`;
    const parsed = await parseEvents(await decodeBody({ bytes: bytes(text) }), context);
    expect(parsed.events.map((one) => one.event)).toEqual(['fewer', 'last']);
    expect(parsed.notices.skipped.map(({ index, reason }) => [index, reason])).toEqual([
      [1, 'too_many_values'],
    ]);
  });

  test('keeps its numbers exact, however many are not', async () => {
    const text = `{"api_key":"k","event":"e","n":[${'12345678901234567890,1e400,-1.5e3,0.1234567890123456789,'.repeat(20_000)}7]}`;
    const { root } = await decodeBody({ bytes: bytes(text) });
    const { n } = root as { n: unknown[] };
    expect(n.slice(0, 5)).toEqual([
      ...['12345678901234567890', '1e400', -1500, 0.12345678901234568, '12345678901234567890'],
    ]);
    expect([n.length, n.at(-1)]).toEqual([80_001, 7]);
  });

  test('of one long text lets others have their turn while it is read', async () => {
    const text = `{"api_key":"k","event":"e","properties":{"a":"${'x'.repeat(2 * ONE_GO)}"}}`;
    const turns = await turnsDuring(() => decodeBody({ bytes: bytes(text) }));
    expect(turns).toBeGreaterThanOrEqual(3);
  });
});
