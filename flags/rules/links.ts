/** What of a flag says how it depends on others. */
export interface Link {
  id: number;
  key: string;
  active: boolean;
  asks: readonly number[];
}

/** Finds a circle through a flag: the keys in the order in which they ask, the first one again at the end. */
export function circleThrough(id: number, links: ReadonlyMap<number, Link>): string[] | undefined {
  const from = new Map<number, number>();
  const open = [id];
  for (const one of open) {
    for (const next of links.get(one)?.asks ?? []) {
      if (next === id) return pathTo(one, from, links, id);
      if (from.has(next) || !links.has(next)) continue;
      from.set(next, one);
      open.push(next);
    }
  }
  return undefined;
}

function pathTo(
  last: number,
  from: ReadonlyMap<number, number>,
  links: ReadonlyMap<number, Link>,
  id: number,
): string[] {
  const keyOf = (one: number) => links.get(one)?.key ?? String(one);
  const path = [keyOf(id)];
  for (let one: number | undefined = last; one !== undefined && one !== id; one = from.get(one)) {
    path.unshift(keyOf(one));
  }
  return [keyOf(id), ...path];
}

/** Lists for each flag those that ask about it. */
export function askersOf<T extends Link>(links: Iterable<T>): Map<number, T[]> {
  const askers = new Map<number, T[]>();
  for (const link of links) {
    for (const id of link.asks) {
      const known = askers.get(id);
      if (known) known.push(link);
      else askers.set(id, [link]);
    }
  }
  return askers;
}

/** Orders flags so that each comes after those of them that ask about it. Flags on a circle come last. */
export function askersFirst(ids: ReadonlySet<number>, links: ReadonlyMap<number, Link>): number[] {
  const askers = new Map([...ids].map((id) => [id, 0]));
  const asked = (id: number) => (links.get(id)?.asks ?? []).filter((one) => ids.has(one));
  for (const id of ids) for (const one of asked(id)) askers.set(one, (askers.get(one) ?? 0) + 1);
  const order = [...ids].filter((id) => askers.get(id) === 0);
  for (const id of order) {
    for (const one of asked(id)) {
      const left = (askers.get(one) ?? 0) - 1;
      askers.set(one, left);
      if (left === 0) order.push(one);
    }
  }
  return [...order, ...[...ids].filter((id) => askers.get(id) !== 0)];
}

const MOST_NAMED = 5;

/** Names flags in a message: the first five, and how many others there are. */
export function nameFlags(links: readonly Link[]): string {
  const named = links.slice(0, MOST_NAMED).map(({ key, id }) => `${key} (ID: ${id})`);
  const rest = links.length - named.length;
  return rest > 0 ? `${named.join(', ')} and ${rest} more` : named.join(', ');
}
