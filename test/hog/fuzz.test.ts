import { expect, test } from '@jest/globals';
import { rounds } from '../support/rounds.ts';
import { testParser } from './parser/support.ts';
import { type FuzzCount, fuzzCode, fuzzSource } from './support/fuzz.ts';
import { Random } from './support/random.ts';

const SOURCES = rounds(1_500, 30_000);
const CODES = rounds(20_000, 400_000);

// A short look every time; `node test/hog/fuzz.ts <minutes> <seed>` looks for as long as one likes.
const parser = testParser({ timeoutMs: 5_000, programTimeoutMs: 5_000, workers: 2, cacheEntries: 100 });

test('random and mutated sources end in results or typed errors', async () => {
  const count: FuzzCount = { sources: 0, parsed: 0, refused: 0, ran: 0, codes: 0, states: 0 };
  for (let seed = 0; seed < SOURCES; seed++) await fuzzSource(parser, new Random(seed), count);
  expect(count.sources).toBe(SOURCES);
  expect(count.refused).toBeGreaterThan(SOURCES / 4);
  expect(count.ran).toBeGreaterThan(SOURCES / 16);
});

test('random code ends in results or failures', () => {
  const count: FuzzCount = { sources: 0, parsed: 0, refused: 0, ran: 0, codes: 0, states: 0 };
  for (let seed = 0; seed < CODES; seed++) {
    const random = new Random(seed);
    const code = [
      '_H',
      1,
      ...random.list(30, () => random.pick([random.below(60), random.below(6), 'x', 'concat', true])),
    ];
    fuzzCode(random, code, count);
  }
  expect(count.codes).toBe(CODES);
});
