import { gzipSync } from 'node:zlib';
import { expect, test } from '@jest/globals';
import LZString from 'lz-string';
import { checkToken } from '../../api/public/project-keys.ts';
import { decodeBody, type WireBody } from '../../capture/decode/decode.ts';
import { parseEvents } from '../../capture/parse/parse.ts';
import { rounds } from '../support/rounds.ts';

/** A generator of numbers that starts the same way each time: what it finds, it finds again. */
function mulberry(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

const ATOMS = [
  'null',
  'true',
  '0',
  '-1',
  '1e400',
  '9007199254740993',
  '""',
  '" "',
  '"\\u0000"',
  '"\\ud800"',
  '"😀"',
  '[]',
  '{}',
  '[[]]',
  '"phc_a"',
  '"2026-01-01"',
  '"garbage"',
  '1e300',
  '"0197a3c0-0000-7000-8000-00000000000a"',
  '{"__proto__":1}',
];
const KEYS = [
  'api_key',
  'token',
  '$token',
  'event',
  'distinct_id',
  '$distinct_id',
  'properties',
  'batch',
  'data',
  'timestamp',
  'offset',
  'sent_at',
  'uuid',
  '$set',
  '$set_once',
  '$unset',
  'historical_migration',
  '__proto__',
  'constructor',
  'options',
  'session_id',
  'created_at',
  'compression',
];
const HINTS = [undefined, 'gzip', 'gzip-js', 'lz64', 'base64', 'br', ''];
const TYPES = [undefined, 'application/json', 'text/plain', 'application/x-www-form-urlencoded', 'x'];
const EXPECTED = new Set(['DecodeError', 'ApiError', 'InconsistentTokensError', 'HistoricalMigrationError']);
const ROUNDS = rounds(4_000, 100_000);

function value(pick: (below: number) => number, depth: number): string {
  const kind = pick(10);
  if (depth > 4 || kind < 4) return ATOMS[pick(ATOMS.length)] as string;
  if (kind < 6) return `[${Array.from({ length: pick(4) }, () => value(pick, depth + 1)).join(',')}]`;
  const pairs = Array.from(
    { length: 1 + pick(6) },
    () => `"${KEYS[pick(KEYS.length)]}":${value(pick, depth + 1)}`,
  );
  return `{${pairs.join(',')}}`;
}

function damage(bytes: Buffer, pick: (below: number) => number): Buffer {
  if (bytes.length === 0) return bytes;
  switch (pick(4)) {
    case 0:
      return bytes.subarray(0, pick(bytes.length));
    case 1: {
      const copy = Buffer.from(bytes);
      for (let times = 1 + pick(3); times > 0; times -= 1) copy[pick(copy.length)] = pick(256);
      return copy;
    }
    case 2:
      return Buffer.concat([bytes.subarray(pick(bytes.length)), bytes]);
    default:
      return bytes;
  }
}

/** Nearly a request: an event that could be stored, next to parts that are made up. */
function request(pick: (below: number) => number): string {
  const good = `{"event":"e","distinct_id":"u","properties":${value(pick, 2)},"timestamp":${value(pick, 3)}}`;
  const made = Array.from({ length: pick(4) }, () => value(pick, 1));
  return `{"api_key":"phc_a","batch":[${[good, ...made].join(',')}],"sent_at":${value(pick, 4)}}`;
}

function wireOf(pick: (below: number) => number): WireBody {
  const text = pick(3) > 0 ? request(pick) : value(pick, 0);
  const plain = Buffer.from(text);
  const wraps = [
    () => plain,
    () => plain,
    () => gzipSync(plain, { level: 1 }),
    () => Buffer.from(plain.toString('base64')),
    () => Buffer.from(LZString.compressToBase64(text)),
    () => Buffer.from(`data=${encodeURIComponent(text)}`),
  ];
  const wrapped = (wraps[pick(wraps.length)] as () => Buffer)();
  const bytes = pick(2) === 0 ? wrapped : damage(wrapped, pick);
  return {
    bytes,
    contentType: TYPES[pick(TYPES.length)],
    contentEncoding: HINTS[pick(HINTS.length)],
    compression: HINTS[pick(HINTS.length)],
  };
}

test(`${ROUNDS} bodies that were made up: events that can be stored, or a refusal, and nothing else`, async () => {
  const pick = mulberry(20_261_121);
  let [accepted, refused] = [0, 0];
  for (let round = 0; round < ROUNDS; round += 1) {
    const wire = wireOf(pick);
    const context = {
      now: Date.UTC(2026, 0, 2),
      ip: '203.0.113.7',
      newUuid: () => '0197a3c0-0000-7000-8000-00000000000b',
      checkToken,
      isEngage: pick(5) === 0,
      ...(pick(5) === 0 ? { v1: { sdk: 'x/1' }, token: 'phc_a' } : {}),
    };
    try {
      const { events } = await parseEvents(await decodeBody(wire), context);
      for (const event of events) {
        const text = JSON.stringify(event);
        // What Postgres refuses: NUL and halves of pairs, which JSON.stringify writes as escapes.
        if (/(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/i.test(text)) throw new Error(`round ${round}: ${text}`);
        if (!Number.isSafeInteger(event.timestamp) || event.distinct_id.trim() === '' || event.event === '') {
          throw new Error(`round ${round}: ${text}`);
        }
      }
      accepted += 1;
    } catch (error) {
      if (!EXPECTED.has((error as Error).name)) {
        throw new Error(`round ${round}: ${JSON.stringify(wire.bytes.toString('latin1'))}`, { cause: error });
      }
      refused += 1;
    }
  }
  // Both ways must have been taken, or the made-up bodies are no test.
  expect(accepted).toBeGreaterThan(ROUNDS / 10);
  expect(refused).toBeGreaterThan(ROUNDS / 10);
  expect(({} as Record<string, unknown>).a).toBeUndefined();
});
