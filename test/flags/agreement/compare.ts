import {
  EXCEPTIONS,
  type Filter,
  type Filters,
  FLAG_EXCEPTIONS,
  mayBeUndecided,
  SKIPPED_CONDITION,
} from './exceptions.ts';
import type { Ours, Values } from './ours.ts';
import { GROUP_TYPES, type RandomCohort, type RandomFlag, type RandomUser } from './random.ts';

export interface Cases {
  flags: readonly RandomFlag[];
  cohorts: readonly RandomCohort[];
  users: readonly RandomUser[];
}

interface Tree extends Filter {
  values?: Tree[];
}

export interface Comparison {
  /** How many values were compared, and how many of them the SDK decided by itself. */
  asked: number;
  decided: number;
  /** How often an exception of the written list explained a difference. */
  excused: Map<string, number>;
  /** What nothing explains. */
  differences: { flag: string; sdk: unknown; server: unknown; filters: unknown; user: RandomUser }[];
}

const SHOWN = 5;

/** Finds why an SDK may differ from the server. */
function excuses(sdk: 'node' | 'python', { flags, cohorts }: Cases) {
  const byId = new Map(flags.map((flag) => [String(flag.id), flag]));
  const trees = new Map(cohorts.map((one) => [String(one.id), one.properties as unknown as Tree]));

  function* filtersOf(filter: Tree): Generator<Filter> {
    if (filter.values) for (const one of filter.values) yield* filtersOf(one);
    else if (filter.type === 'cohort') yield* filtersOf(trees.get(String(filter.value)) as Tree);
    else if (filter.type === 'flag') {
      const { groups } = (byId.get(filter.key) as RandomFlag).filters as unknown as Filters;
      for (const { properties } of groups) for (const one of properties) yield* filtersOf(one);
    } else yield filter;
  }
  function propertyOf({ type, key, group_type_index: index }: Filter, user: RandomUser): unknown {
    if (type === 'group') return user.groupProperties[GROUP_TYPES[index ?? 0] as string]?.[key];
    return { distinct_id: user.distinctId, ...user.personProperties }[key];
  }
  /** A flag that asks about another one has the other's exceptions too. */
  function skips(flag: RandomFlag, user: RandomUser): boolean {
    const { groups, multivariate, early_exit } = flag.filters as unknown as Filters;
    if (askedBy(flag).some((one) => skips(one, user))) return true;
    if (!multivariate && !early_exit) return false;
    return groups
      .slice(0, -1)
      .some(({ properties }) =>
        properties.some((one) =>
          [...filtersOf(one)].some((filter) =>
            mayBeUndecided(filter.operator ?? 'exact', filter.value, propertyOf(filter, user)),
          ),
        ),
      );
  }
  function askedBy(flag: RandomFlag): RandomFlag[] {
    const { groups } = flag.filters as unknown as Filters;
    const keys = groups.flatMap(({ properties }) => properties).filter(({ type }) => type === 'flag');
    return keys.flatMap(({ key }) => {
      const asked = byId.get(key) as RandomFlag;
      return [asked, ...askedBy(asked)];
    });
  }
  return (flag: RandomFlag, user: RandomUser): string | undefined => {
    const asked = askedBy(flag).map((one) => one.filters as unknown as Filters);
    const ofFlag = FLAG_EXCEPTIONS.find(
      (one) => one.sdks.includes(sdk) && one.applies(flag.filters as unknown as Filters, asked),
    );
    if (ofFlag) return ofFlag.name;
    for (const { properties } of (flag.filters as unknown as Filters).groups) {
      for (const filter of properties.flatMap((one) => [...filtersOf(one)])) {
        const property = propertyOf(filter, user);
        const { operator = 'exact', value } = filter;
        if (property === undefined) continue;
        const found = EXCEPTIONS.find(
          (one) => one.sdks.includes(sdk) && one.applies(operator, value, property),
        );
        if (found) return found.name;
      }
    }
    return skips(flag, user) ? SKIPPED_CONDITION : undefined;
  };
}

/** Compares what an SDK decided by itself with what the server answers. */
export async function compare(
  sdk: 'node' | 'python',
  cases: Cases,
  server: Ours,
  evaluated: AsyncIterable<Values>,
): Promise<Comparison> {
  const comparison: Comparison = { asked: 0, decided: 0, excused: new Map(), differences: [] };
  const excuse = excuses(sdk, cases);
  const flags = cases.flags.filter((flag) => flag.isActive);
  /** One difference of each flag is enough to look at. */
  const told = new Set<string>();
  let index = 0;
  for await (const here of evaluated) {
    const user = cases.users[index] as RandomUser;
    index += 1;
    const there = await server.values(user);
    comparison.asked += flags.length;
    for (const flag of flags) {
      const { key } = flag;
      if (here[key] === undefined) continue;
      comparison.decided += 1;
      if (here[key] === there[key]) continue;
      const why = excuse(flag, user);
      if (why !== undefined) comparison.excused.set(why, (comparison.excused.get(why) ?? 0) + 1);
      else if (comparison.differences.length < SHOWN && !told.has(key)) {
        told.add(key);
        const { filters } = flag;
        comparison.differences.push({ flag: key, sdk: here[key], server: there[key], filters, user });
      }
    }
  }
  return comparison;
}
