import type { Cohorts } from '../../properties/index.ts';
import type { CompiledFlag } from './compile.ts';
import { Draws } from './draws/draws.ts';

/** What of a person and their groups flags may ask for. */
export interface Needs {
  properties: readonly string[];
  staticCohorts: readonly number[];
  groupProperties: readonly string[];
  /** The keys of the flags that stay what they were when somebody becomes known. */
  continuous: readonly string[];
}

/** What some flags of a set, and those that they ask about, may ask for. */
export function needsOf(
  flags: Iterable<CompiledFlag>,
  byId: ReadonlyMap<number, CompiledFlag>,
  cohorts: Cohorts,
): Needs {
  const all = new Set(flags);
  for (const flag of all) {
    for (const id of flag.asks) {
      const asked = byId.get(id);
      if (asked) all.add(asked);
    }
  }
  const list = [...all].filter((flag) => flag.definition.isActive);
  const ofCohorts = [...new Set(list.flatMap((flag) => flag.cohorts))].map((id) => cohorts.needs(id));
  const continuous = list.filter((flag) => flag.definition.ensureExperienceContinuity);
  return {
    properties: [
      ...new Set([...list.flatMap((flag) => flag.properties), ...ofCohorts.flatMap((one) => one.properties)]),
    ],
    staticCohorts: [...new Set(ofCohorts.flatMap((one) => one.staticCohorts))],
    groupProperties: [...new Set(list.flatMap((flag) => flag.groupProperties))],
    continuous: continuous.map((flag) => flag.definition.key),
  };
}

/** The flags of a project as one consistent set. It never changes: a change makes another one. */
export interface FlagSet {
  /** Each after those that it asks about. Those on a circle are not among them. */
  flags: readonly CompiledFlag[];
  byKey: ReadonlyMap<string, CompiledFlag>;
  byId: ReadonlyMap<number, CompiledFlag>;
  /** The ids of the flags that others ask about. */
  asked: ReadonlySet<number>;
  /** Flags that ask about each other in a circle, so that none of them can be computed. */
  circular: readonly CompiledFlag[];
  cohorts: Cohorts;
  needs: Needs;
  draws: Draws;
  /** The types of groups of the project. */
  groupTypes: ReadonlyMap<string, number>;
  timezone: string;
}

/**
 * Finds for each flag how many flags are asked one after the other before it can be computed. A flag on a circle, or one that
 * asks about such a flag, has no such number.
 */
function levelsOf(byId: ReadonlyMap<number, CompiledFlag>): Map<CompiledFlag, number> {
  const levels = new Map<CompiledFlag, number>();
  const open = new Map<CompiledFlag, number>();
  const askedBy = new Map<number, CompiledFlag[]>();
  let ready: CompiledFlag[] = [];
  for (const flag of byId.values()) {
    const asks = flag.asks.filter((id) => byId.has(id));
    open.set(flag, asks.length);
    if (asks.length === 0) ready.push(flag);
    for (const id of asks) {
      const others = askedBy.get(id);
      if (others) others.push(flag);
      else askedBy.set(id, [flag]);
    }
  }
  for (let level = 0; ready.length > 0; level += 1) {
    const next: CompiledFlag[] = [];
    for (const flag of ready) {
      levels.set(flag, level);
      for (const asking of askedBy.get(flag.definition.id) ?? []) {
        const left = (open.get(asking) as number) - 1;
        open.set(asking, left);
        if (left === 0) next.push(asking);
      }
    }
    ready = next;
  }
  return levels;
}

/** Joins flags to a set. */
export function flagSet(
  given: Iterable<CompiledFlag>,
  rest: Pick<FlagSet, 'cohorts' | 'groupTypes' | 'timezone'>,
): FlagSet {
  const all = [...given].sort((left, right) => left.definition.id - right.definition.id);
  const byId = new Map(all.map((flag) => [flag.definition.id, flag]));
  const levels = levelsOf(byId);
  const flags = all.filter((flag) => levels.has(flag));
  // Who asks comes after whom it asks about, so that a long chain of questions needs no deep recursion.
  flags.sort((left, right) => (levels.get(left) as number) - (levels.get(right) as number));
  return {
    ...rest,
    flags,
    byId,
    byKey: new Map(flags.map((flag) => [flag.definition.key, flag])),
    asked: new Set(all.flatMap((flag) => flag.asks)),
    circular: all.filter((flag) => !levels.has(flag)),
    needs: needsOf(flags, byId, rest.cohorts),
    draws: new Draws(flags),
  };
}
