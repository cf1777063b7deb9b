import { expect, test } from '@jest/globals';
import { testParser } from './parser/support.ts';
import { type FuzzCount, fuzzCode, fuzzSource } from './support/fuzz.ts';
import { Random } from './support/random.ts';

// A short look every time; `node test/hog/fuzz.ts <minutes> <seed>` looks for as long as one likes.
const parser = testParser({ timeoutMs: 5_000, programTimeoutMs: 5_000, workers: 2, cacheEntries: 100 });

test('random and mutated sources end in results or typed errors', async () => {
  const count: FuzzCount = { sources: 0, parsed: 0, refused: 0, ran: 0, codes: 0, states: 0 };
  for (let seed = 0; seed < 8_000; seed++) await fuzzSource(parser, new Random(seed), count);
  expect(count.sources).toBe(8_000);
  expect(count.refused).toBeGreaterThan(2_000);
  expect(count.ran).toBeGreaterThan(500);
});

test('random code ends in results or failures', () => {
  const count: FuzzCount = { sources: 0, parsed: 0, refused: 0, ran: 0, codes: 0, states: 0 };
  for (let seed = 0; seed < 100_000; seed++) {
    const random = new Random(seed);
    const code = [
      '_H',
      1,
      ...random.list(30, () => random.pick([random.below(60), random.below(6), 'x', 'concat', true])),
    ];
    fuzzCode(random, code, count);
  }
  expect(count.codes).toBe(100_000);
});
