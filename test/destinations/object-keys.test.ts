import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type KeyOptions, objectKeys, prefixProblem } from '../../destinations/object-keys.ts';

const base: KeyOptions = {
  prefix: '',
  model: 'events',
  interval: { start: Date.parse('2026-01-31T12:00:00Z'), end: Date.parse('2026-01-31T13:05:09Z') },
  format: 'JSONLines',
  compression: null,
  numbered: false,
};
const STEM = '2026-01-31T12:00:00+00:00-2026-01-31T13:05:09+00:00';

describe('keys', () => {
  const cases: [name: string, options: Partial<KeyOptions>, file0: string, manifest: string][] = [
    ['no prefix', {}, `${STEM}.jsonl`, `${STEM}_manifest.json`],
    ['a folder', { prefix: 'ph/' }, `ph/${STEM}.jsonl`, `ph/${STEM}_manifest.json`],
    ['a folder without a slash', { prefix: 'ph' }, `ph/${STEM}.jsonl`, `ph/${STEM}_manifest.json`],
    ['slashes in front and doubled', { prefix: '//a//b/' }, `a/b/${STEM}.jsonl`, `a/b/${STEM}_manifest.json`],
    ['a slash alone', { prefix: '/' }, `${STEM}.jsonl`, `${STEM}_manifest.json`],
    [
      'the variables of the end',
      { prefix: '{table}/{year}-{month}-{day}/{hour}:{minute}:{second}' },
      `events/2026-01-31/13:05:09/${STEM}.jsonl`,
      `events/2026-01-31/13:05:09/${STEM}_manifest.json`,
    ],
    [
      'the bounds',
      { prefix: '{data_interval_start}_{data_interval_end}' },
      `2026-01-31T12:00:00+00:00_2026-01-31T13:05:09+00:00/${STEM}.jsonl`,
      `2026-01-31T12:00:00+00:00_2026-01-31T13:05:09+00:00/${STEM}_manifest.json`,
    ],
    [
      'hive-style partitions',
      { prefix: 'dt={year}-{month}-{day}' },
      `dt=2026-01-31/${STEM}.jsonl`,
      `dt=2026-01-31/${STEM}_manifest.json`,
    ],
    ['doubled braces', { prefix: '{{{year}}}' }, `{2026}/${STEM}.jsonl`, `{2026}/${STEM}_manifest.json`],
    ['numbers', { numbered: true }, `${STEM}-0.jsonl`, `${STEM}_manifest.json`],
    ['gzip', { compression: 'gzip' }, `${STEM}.jsonl.gz`, `${STEM}_manifest.json`],
    ['zstd', { compression: 'zstd' }, `${STEM}.jsonl.zst`, `${STEM}_manifest.json`],
    ['brotli', { compression: 'brotli' }, `${STEM}.jsonl.br`, `${STEM}_manifest.json`],
    [
      'CSV',
      { format: 'CSV', compression: 'gzip', numbered: true },
      `${STEM}-0.csv.gz`,
      `${STEM}_manifest.json`,
    ],
    [
      'Parquet, compressed inside',
      { format: 'Parquet', compression: 'zstd' },
      `${STEM}.parquet`,
      `${STEM}_manifest.json`,
    ],
    [
      'from the beginning',
      { interval: { start: null, end: base.interval.end } },
      'None-2026-01-31T13:05:09+00:00.jsonl',
      'None-2026-01-31T13:05:09+00:00_manifest.json',
    ],
    [
      'a fraction of a second',
      { interval: { start: null, end: Date.parse('2026-01-31T13:05:09.250Z') } },
      'None-2026-01-31T13:05:09.250000+00:00.jsonl',
      'None-2026-01-31T13:05:09.250000+00:00_manifest.json',
    ],
  ];
  test.each(cases)('%s', (_name, options, file0, manifest) => {
    const keys = objectKeys({ ...base, ...options });
    expect([keys.file(0), keys.manifest]).toEqual([file0, manifest]);
    expect(keys.owns(file0)).toBe(true);
    expect(keys.owns(manifest)).toBe(false);
  });

  test('further files are numbered', () => {
    expect(objectKeys({ ...base, numbered: true }).file(12)).toBe(`${STEM}-12.jsonl`);
  });

  test('an interval owns its files of every format, and no others', () => {
    const { owns } = objectKeys({ ...base, prefix: 'a/' });
    const mine = [`a/${STEM}-3.parquet`, `a/${STEM}.csv.gz`, `a/${STEM}-0.jsonl.zst`];
    const others = [
      `${STEM}.jsonl`,
      `a/${STEM}`,
      `a/${STEM}-x.jsonl`,
      `a/${STEM}.jsonl/b`,
      `a/${STEM}.exe`,
      `a/${STEM}1.jsonl`,
      `a/../a/${STEM}.jsonl`,
    ];
    expect([...mine, ...others].filter(owns)).toEqual(mine);
  });
});

test.each([
  ['{yeer}', `The prefix has the unknown variable '{yeer}'.`],
  ['{}', `The prefix has the unknown variable '{}'.`],
  ['{year', `The prefix has a '{' without its counterpart`],
  ['year}', `The prefix has a '}' without its counterpart`],
  ['a/../b', `must not have the segments '.' and '..'`],
  ['..', `must not have the segments '.' and '..'`],
  ['./a', `must not have the segments '.' and '..'`],
  ['a\\b', 'control characters, backslashes'],
  ['a\u0000b', 'control characters'],
  ['a\ud800', 'halves of characters'],
  ['x'.repeat(851), 'longer than 850 bytes'],
  ['é'.repeat(426), 'longer than 850 bytes'],
])('the prefix %j is refused', (prefix, message) => {
  expect(prefixProblem(prefix)).toContain(message);
});

test('whatever the prefix, a key stays within its folder and within what S3 takes', () => {
  const part = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 30 }),
    fc.constantFrom('{year}', '{{', '}}', '/', '..', '{table}', '{data_interval_end}'),
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 12 }), fc.nat(99_999), (parts, index) => {
      const prefix = parts.join('');
      if (prefixProblem(prefix) !== undefined) return;
      const keys = objectKeys({ ...base, prefix, numbered: true });
      for (const key of [keys.file(index), keys.manifest]) {
        expect(key.startsWith('/')).toBe(false);
        expect(key.split('/')).not.toContain('..');
        expect(key.split('/')).not.toContain('');
        expect(Buffer.byteLength(key)).toBeLessThanOrEqual(1024);
      }
      expect(keys.owns(keys.file(index))).toBe(true);
    }),
    { numRuns: 1_000 },
  );
});

test('intervals, files and models never share a key', () => {
  const seen = new Set<string>();
  let count = 0;
  for (const model of ['events', 'persons'])
    for (const hour of [1, 2, 3])
      for (const index of [0, 1, 10, 11]) {
        const end = Date.UTC(2026, 0, 1, hour);
        const interval = { start: end - 3_600_000, end };
        seen.add(objectKeys({ ...base, prefix: '{table}', model, interval, numbered: true }).file(index));
        count += 1;
      }
  expect(seen.size).toBe(count);
});
