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

/** One condition after parsing: aliases are resolved, defaults are filled in, and the value has a valid form. */
export interface PropertyFilter {
  kind: 'property';
  type: FilterType;
  key: string;
  operator: Operator;
  value: FilterValue;
  /** The group type of `group` filters, from 0 to 4. Null for other filters. */
  groupTypeIndex: number | null;
  negation: boolean;
  /** The place of the condition in the document. Paths in errors begin with it. */
  path: string;
}

export interface FilterGroup {
  kind: 'group';
  type: 'AND' | 'OR';
  values: FilterNode[];
}

export type FilterNode = PropertyFilter | FilterGroup;

/** Joins conditions with AND. A plain list in a document means the same. */
export const all = (values: FilterNode[]): FilterGroup => ({ kind: 'group', type: 'AND', values });
