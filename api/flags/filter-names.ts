import { namesOfCohorts } from '../../cohorts/rows/cohorts.ts';
import { namesOfGroups } from '../../db/groups.ts';
import type { Queryable } from '../../db/pool.ts';

type Fields = Record<string, unknown>;

const listIn = (value: unknown, field: string): Fields[] => {
  const list: unknown = typeof value === 'object' && value !== null ? (value as Fields)[field] : undefined;
  return Array.isArray(list) ? list.filter((one) => typeof one === 'object' && one !== null) : [];
};

/** All filters of the condition sets of some flags. */
const propertiesOf = (flags: readonly { filters: Fields }[]): Fields[] =>
  flags.flatMap(({ filters }) => listIn(filters, 'groups').flatMap((group) => listIn(group, 'properties')));

const keysIn = (value: unknown): string[] =>
  (Array.isArray(value) ? value : [value]).filter((one) => typeof one === 'string');

/** Adds to filters what the cohorts and groups are called that they name by their ids and keys. */
export async function withNames<Flag extends { filters: Fields }>(
  queryable: Queryable,
  projectId: number,
  flags: Flag[],
): Promise<Flag[]> {
  const properties = propertiesOf(flags);
  const cohorts = properties.filter((one) => one.type === 'cohort' && Number.isInteger(Number(one.value)));
  const groups = properties.filter((one) => one.type === 'group' && one.key === '$group_key');
  if (cohorts.length > 0) {
    const ids = cohorts.map((one) => Number(one.value)).filter((id) => id < 2 ** 31);
    const names = await namesOfCohorts(queryable, projectId, ids);
    for (const one of cohorts) {
      const name = names.get(Number(one.value));
      if (name !== undefined) one.cohort_name = name;
    }
  }
  if (groups.length > 0) {
    const keys = groups.flatMap((one) =>
      keysIn(one.value).map((key) => ({ index: Number(one.group_type_index), key })),
    );
    const names = await namesOfGroups(queryable, projectId, keys);
    for (const one of groups) {
      const known = keysIn(one.value).flatMap((key) => {
        const name = names.find((group) => group.index === Number(one.group_type_index) && group.key === key);
        return name ? [[key, name.name]] : [];
      });
      if (known.length > 0) one.group_key_names = Object.fromEntries(known);
    }
  }
  return flags;
}
