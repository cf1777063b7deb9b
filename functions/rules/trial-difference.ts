import { type Difference, differences } from './difference.ts';

/** What one invocation does that the world can see. */
export interface Effect {
  mapping: string | null;
  status: string;
  result: unknown;
  errors: readonly string[];
  captured: readonly unknown[];
  fetches: readonly { method: string; url: string; headers: Record<string, string>; body: string | null }[];
}

/** A place where the effects of two versions differ. */
export interface EffectDifference extends Difference {
  /** The name of the mapping. Null: the function has none. */
  mapping: string | null;
}

const MOST = 100;

/** A body that is JSON is compared field by field. */
function bodyOf(text: string | null): unknown {
  if (text === null) return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const seenOf = ({ status, result, errors, captured, fetches }: Effect) => ({
  ...{ status, result, errors, captured },
  fetches: fetches.map(({ method, url, headers, body }) => ({ method, url, headers, body: bodyOf(body) })),
});

/** Effects by their mapping. Mappings of the same name are told apart by their order. */
function byMapping(effects: readonly Effect[]): Map<string, Effect> {
  const found = new Map<string, Effect>();
  for (const one of effects) {
    const count = [...found.values()].filter(({ mapping }) => mapping === one.mapping).length;
    found.set(JSON.stringify([one.mapping, count]), one);
  }
  return found;
}

/** Lists where the effects of two versions on one event differ. Undefined in `running`: that version has no such mapping. */
export function effectDifferences(
  running: readonly Effect[],
  proposed: readonly Effect[],
): EffectDifference[] {
  const [before, after] = [byMapping(running), byMapping(proposed)];
  const found: EffectDifference[] = [];
  for (const key of new Set([...before.keys(), ...after.keys()])) {
    const [one, other] = [before.get(key), after.get(key)];
    const mapping = (one ?? other)?.mapping ?? null;
    const places = differences(one && seenOf(one), other && seenOf(other), MOST - found.length);
    found.push(...places.map((place) => ({ mapping, ...place })));
  }
  return found;
}
