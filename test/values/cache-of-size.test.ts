import { expect, test } from '@jest/globals';
import { cacheOfSize } from '../../values/cache-of-size.ts';

test('a cache of a size drops what was asked for longest ago, and keeps what was put last in any case', () => {
  const cache = cacheOfSize<string, { size: number }>(10, ({ size }) => size);
  const kept = (...keys: string[]) => keys.filter((key) => cache.peek(key) !== undefined);
  cache.set('a', { size: 4 });
  cache.set('b', { size: 4 });
  cache.get('a');
  cache.set('c', { size: 5 });
  expect(kept('a', 'b', 'c')).toEqual(['a', 'c']);
  cache.set('a', { size: 6 });
  expect(kept('a', 'c')).toEqual(['a']);
  cache.set('d', { size: 50 });
  expect(kept('a', 'c', 'd')).toEqual(['d']);
  cache.set('d', { size: 10 });
  cache.set('e', { size: 0 });
  expect(kept('d', 'e')).toEqual(['e']);
});
