import type { Operator } from './operators.ts';

export const FILTER_TYPES = [
  'event',
  'event_metadata',
  'person',
  'group',
  'session',
  'element',
  'feature',
  'cohort',
  'flag',
  'hogql',
] as const;
export type FilterType = (typeof FILTER_TYPES)[number];

export type Scalar = string | number | boolean;
export type FilterValue = Scalar | null | Scalar[];

/** One condition, after reading: aliases resolved, defaults filled, value of a usable form. */
export interface PropertyFilter {
  kind: 'property';
  type: FilterType;
  key: string;
  operator: Operator;
  value: FilterValue;
  /** Of `group` filters: 0…4; null otherwise. */
  groupTypeIndex: number | null;
  negation: boolean;
  /** Where the condition stands in the document: the start of the paths in errors. */
  path: string;
}

export interface FilterGroup {
  kind: 'group';
  type: 'AND' | 'OR';
  values: FilterNode[];
}

export type FilterNode = PropertyFilter | FilterGroup;

/** A list of conditions in the document is the group that joins them with AND. */
export const all = (values: FilterNode[]): FilterGroup => ({ kind: 'group', type: 'AND', values });
