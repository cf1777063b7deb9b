import { LRUCache } from 'lru-cache';

/**
 * A cache that holds so much in total, and drops first what was asked for longest ago. What was put last stays, however large
 * it is: whoever put it needs it.
 */
export function cacheOfSize<Key extends {}, Value extends {}>(
  most: number,
  sizeOf: (value: Value) => number,
): LRUCache<Key, Value> {
  // The library refuses sizes of 0, and does not keep what is larger than the whole cache.
  return new LRUCache({
    maxSize: most,
    sizeCalculation: (value) => Math.min(Math.max(1, sizeOf(value)), most),
  });
}
