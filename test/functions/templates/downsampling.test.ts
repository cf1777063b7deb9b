import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { trialsForFile } from './trial.ts';

const trials = trialsForFile();
const IDS = Array.from({ length: 20 }, (_one, index) => `person ${index}`);
const placeOf = (id: string) =>
  Number.parseInt(createHash('sha256').update(id).digest('hex').slice(0, 13), 16) / 16 ** 13;

describe.each([
  ['template-downsampling', (part: number) => part, { randomSampling: true }],
  ['plugin-downsampling-plugin', String, { samplingMethod: 'Random sampling' }],
] as const)('%s', (id, written, random) => {
  const isKept = async (inputs: object, event = {}) => {
    const tried = await trials.run(id, { inputs: { ...inputs }, event });
    expect(tried.errors).toEqual([]);
    return tried.result !== null;
  };

  test('keeps the same distinct_ids, as many as it is told to', async () => {
    for (const part of [30, 70]) {
      const kept = [];
      for (const distinct_id of IDS) {
        if (await isKept({ percentage: written(part) }, { distinct_id })) kept.push(distinct_id);
      }
      expect(kept).toEqual(IDS.filter((one) => placeOf(one) < part / 100));
    }
  });

  test('keeps all of 100, none of 0, and events that are not named', async () => {
    expect(await isKept({ percentage: written(100), ...random })).toBe(true);
    expect(await isKept({ percentage: written(0), ...random })).toBe(false);
    const inputs = { percentage: written(0), triggeringEvents: 'other, more' };
    expect(await isKept(inputs)).toBe(true);
    expect(await isKept(inputs, { event: 'more' })).toBe(false);
  });

  test('names a percentage that is wrong', async () => {
    const tried = await trials.run(id, { inputs: { percentage: written(101) } });
    expect(tried.errors.join()).toContain('Percentage must be a number between 0 and 100.');
  });
});
