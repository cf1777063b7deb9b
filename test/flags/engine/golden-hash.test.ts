// The same users get the same flags, in every version on every machine.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { LONG, rounds } from '../../support/rounds.ts';
import { ours } from '../agreement/ours.ts';
import { dice, randomCohorts, randomFlags, randomUser } from '../agreement/random.ts';

const NOW = Date.UTC(2026, 6, 1, 12);
const MANY = 1_000_000;
const SOME = 5_000;
const golden: Record<string, string> = JSON.parse(
  readFileSync(path.join(import.meta.dirname, 'golden-hash.json'), 'utf8'),
);

/** Hashes all answers to so many users: values, reasons and payloads. */
async function hashesOf(most: number): Promise<Record<string, string>> {
  const roll = dice(1);
  const cohorts = randomCohorts(roll, 10);
  const flags = randomFlags(roll, 20, cohorts);
  const own = await ours(flags, cohorts, () => NOW);
  const hash = createHash('sha256');
  const hashes: Record<string, string> = {};
  for (let number = 0; number < most; number += 1) {
    for (const detail of await own.details(randomUser(roll, number))) hash.update(detail);
    if (number + 1 === SOME || number + 1 === MANY) hashes[number + 1] = hash.copy().digest('hex');
  }
  await own.close();
  return hashes;
}

test('a million users get what they got, and get it twice', async () => {
  const once = await hashesOf(rounds(SOME, MANY));
  expect(once).toEqual(LONG ? golden : { [SOME]: golden[SOME] });
  expect(await hashesOf(SOME)).toEqual({ [SOME]: golden[SOME] });
}, 3_600_000);
