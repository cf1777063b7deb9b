import type { Work } from '../../tenancy/product.ts';

/**
 * Does something for each item, and adds up what that answers. One that fails holds up none of the others. Throws the first
 * failure at the end, so that somebody sees it.
 */
export async function eachAlone<T>(
  items: Iterable<T> | AsyncIterable<T>,
  { signal, beat }: Work,
  work: (item: T) => Promise<number>,
): Promise<number> {
  let sum = 0;
  const failures: unknown[] = [];
  for await (const item of items) {
    signal.throwIfAborted();
    beat();
    try {
      sum += await work(item);
    } catch (error) {
      signal.throwIfAborted();
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
  return sum;
}
