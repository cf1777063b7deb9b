import { expect, test } from '@jest/globals';
import { compileFlag } from '../../../flags/engine/compile.ts';
import { Draws } from '../../../flags/engine/draws/draws.ts';
import { placeOf } from '../../../flags/engine/hash.ts';

const variants = ['a', 'b'].map((key) => ({ key, rollout_percentage: 50 }));
const flagOf = (key: string, filters: object, id: number) =>
  compileFlag({
    ...{ id, key, version: 1, filters, ensureExperienceContinuity: false, runtime: 'all' },
    ...{ bucketing: 'distinct_id', contexts: [], isRemoteConfiguration: false, hasEncryptedPayloads: false },
    ...{ isActive: true, overrides: new Map() },
  });
/** Flags with keys of many lengths, each with a rollout, and every third one with variants. */
const flags = Array.from({ length: 90 }, (_, index) =>
  flagOf(
    'k'.repeat(index + 1),
    {
      groups: [{ properties: [], rollout_percentage: 50 }],
      ...(index % 3 === 0 ? { multivariate: { variants } } : {}),
    },
    index + 1,
  ),
);

test('four at once are what each is alone, for keys and ids of every length, and for ids that are not ASCII', () => {
  const draws = new Draws(flags);
  for (const letter of ['x', 'ü', '😀', '\u0000', '\ud800']) {
    for (let length = 1; length <= 250; length += letter === 'x' ? 1 : 7) {
      const id = letter.repeat(length);
      for (const flag of flags) {
        const { key } = flag.definition;
        expect(draws.rollout(flag, id)).toBe(placeOf(`${key}.${id}`));
        if (flag.variants.length > 0) expect(draws.variant(flag, id)).toBe(placeOf(`${key}.${id}variant`));
      }
    }
  }
});

test('ids and sets may take turns at any moment', () => {
  const [one, other] = [new Draws(flags), new Draws(flags.toReversed())];
  for (const flag of flags) {
    for (const id of ['user-1', 'user-2']) {
      for (const draws of [one, other]) {
        expect(draws.rollout(flag, id)).toBe(placeOf(`${flag.definition.key}.${id}`));
      }
    }
  }
});
