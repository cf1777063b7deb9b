import { createHash } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { placeOf } from '../../../flags/engine/hash.ts';

const VECTORS: readonly [text: string, place: number][] = [
  ['new-checkout.user-1', 0.91683243903951728],
  ['new-checkout.user-2', 0.78598980770721349],
  ['new-checkout.user-3', 0.10522732608297344],
  ['new-checkout.user-1variant', 0.25402124693103456],
  ['new-checkout.user-2variant', 0.82828773136212275],
  ['new-checkout.user-3variant', 0.16336031393655093],
  ['holdout-user-1', 0.17805599206573022],
  ['holdout-user-2', 0.92838733079018398],
  ['beta.org:acme', 0.86649334173252113],
  ['beta.café-ü', 0.71040504097236501],
  ['beta.8675309', 0.43619361321204203],
  ['beta-search.user-17', 0.009101217133290002],
];

test.each(VECTORS)('places %s as the SDKs do', (text, place) => {
  expect(placeOf(text)).toBe(place);
});

test('agrees with SHA-1 for texts of every length around a block, and for texts that are not ASCII', () => {
  for (let length = 0; length <= 200; length += 1) {
    for (const letter of ['a', '~', 'ü', '😀', '\u0000']) {
      const text = letter.repeat(length);
      const digits = createHash('sha1').update(text, 'utf8').digest('hex').slice(0, 15);
      expect(placeOf(text)).toBe(Number.parseInt(digits, 16) / 2 ** 60);
    }
  }
});
