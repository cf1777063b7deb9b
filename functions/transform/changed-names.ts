const MOST_NAMES = 100;

/** Lists the properties that were added, changed or removed, up to a number. */
export function changedNames(before: Record<string, unknown>, after: Record<string, unknown>): string[] {
  const names: string[] = [];
  for (const name in after) {
    const isSame = Object.hasOwn(before, name) && same(before[name], after[name]);
    if (!isSame && names.push(name) === MOST_NAMES) return names;
  }
  for (const name in before) {
    if (!Object.hasOwn(after, name) && names.push(name) === MOST_NAMES) return names;
  }
  return names;
}

/** Answers whether two values are the same JSON, whatever the order of keys. */
function same(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (Array.isArray(one)) {
    return (
      Array.isArray(other) &&
      one.length === other.length &&
      one.every((item, index) => same(item, other[index]))
    );
  }
  if (Array.isArray(other)) return false;
  const [own, others] = [one as Record<string, unknown>, other as Record<string, unknown>];
  const keys = Object.keys(own);
  return (
    keys.length === Object.keys(others).length &&
    keys.every((key) => Object.hasOwn(others, key) && same(own[key], others[key]))
  );
}
