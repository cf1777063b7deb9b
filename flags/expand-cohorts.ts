import { isObject } from '../values/json-object.ts';
import { own } from './engine/definition.ts';

type Fields = Record<string, unknown>;

/** A cohort that is written as more alternatives than these stays a cohort. */
const MOST_ALTERNATIVES = 100;

/** A tree of conditions as alternatives, each of conditions that must all be fulfilled. Undefined: it cannot be written so. */
function alternativesOf(tree: unknown): Fields[][] | undefined {
  if (!isObject(tree)) return undefined;
  const values = own(tree, 'values');
  if (!Array.isArray(values)) {
    const { type = 'person', negation } = tree;
    return type === 'person' && negation !== true ? [[{ ...tree, type }]] : undefined;
  }
  // A cohort without conditions has no members, and a condition set without conditions is for everybody.
  if (values.length === 0) return undefined;
  const parts: Fields[][][] = [];
  for (const value of values) {
    const part = alternativesOf(value);
    if (part === undefined) return undefined;
    parts.push(part);
  }
  const any = parts.flat();
  if (any.length > MOST_ALTERNATIVES) return undefined;
  if (tree.type === 'OR') return any;
  return parts.every((part) => part.length === 1) ? [any.flat()] : undefined;
}

/** The cohort that a condition set is about, if it is about nothing else. */
function onlyCohortOf(group: Fields): number | undefined {
  const properties = own(group, 'properties');
  const [property] = Array.isArray(properties) && properties.length === 1 ? properties : [];
  if (!isObject(property) || property.type !== 'cohort' || own(group, 'variant')) return undefined;
  const { operator } = property;
  return operator === undefined || operator === null || operator === 'in'
    ? Number(property.value)
    : undefined;
}

/**
 * Writes cohorts in conditions as the properties of persons that they ask about, for SDKs that know no cohorts. A condition set
 * that cannot be written so stays what it is: such an SDK asks the server for the flag.
 */
export function withoutCohorts(filters: unknown, treeOf: (id: number) => unknown): unknown {
  if (!isObject(filters) || !Array.isArray(own(filters, 'groups'))) return filters;
  const groups = (filters.groups as unknown[]).flatMap((group) => {
    const id = isObject(group) ? onlyCohortOf(group) : undefined;
    const alternatives = id === undefined ? undefined : alternativesOf(treeOf(id));
    if (alternatives === undefined) return [group];
    return alternatives.map((properties) => ({ ...(group as Fields), properties }));
  });
  return { ...filters, groups };
}
