import { createRequire } from 'node:module';
import { expect, test } from '@jest/globals';
import { result, runSource } from './support.ts';

const { IANAZone } = createRequire(import.meta.url)('luxon');

test('names that are no time zones are answered alike, however many there were, and are not kept', async () => {
  // The date package keeps a zone that it was asked for before.
  const kept = IANAZone.create('Zone-0');
  const source = `
    let answers := []
    for (let n := 0; n < 2500; n := n + 1) {
      answers := arrayPushBack(answers, toUnixTimestamp('2024-02-30', f'Zone-{n}'))
    }
    return answers`;
  const outcome = await runSource(source, { limits: { maxSteps: 1_000_000, maxMemory: 50_000_000 } });
  expect(new Set(result(outcome) as unknown[])).toEqual(new Set([Number.NaN]));
  expect(IANAZone.create('Zone-0')).not.toBe(kept);
});
