/**
 * Does it for each, a few at once; answers how many said yes. One that fails keeps none of the others from it: the first
 * failure is thrown when all had their turn.
 */
export async function countEach<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<boolean>,
): Promise<number> {
  let count = 0;
  const failures: unknown[] = [];
  for (let from = 0; from < items.length; from += atOnce) {
    const settled = await Promise.allSettled(items.slice(from, from + atOnce).map(work));
    for (const one of settled) {
      if (one.status === 'rejected') failures.push(one.reason);
      else if (one.value) count += 1;
    }
  }
  if (failures.length > 0) throw failures[0];
  return count;
}
