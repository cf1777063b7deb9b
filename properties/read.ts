// Parses filter JSON, as clients send and store it, to typed filters.

import { allowedSize, PatternBudget } from '../hog/patterns/index.ts';
import { isObject } from '../values/json-object.ts';
import { isStorableText } from '../values/texts.ts';
import { cohortIds } from './cohorts.ts';
import { at, FilterError } from './errors.ts';
import {
  all,
  FILTER_TYPES,
  type FilterGroup,
  type FilterNode,
  type FilterType,
  type FilterValue,
  type PropertyFilter,
  type Scalar,
} from './filter.ts';
import { type Operator, operatorOf, VALUELESS } from './operators.ts';
import { RANGE_OPERATORS, readRange } from './range.ts';
import { ofPattern } from './regex.ts';
import { textOf } from './values.ts';

export interface ReadOptions {
  /**
   * Refuses conditions without a key or value. Otherwise they count as true, because stored documents contain such
   * conditions.
   */
  strict?: boolean;
  /** The place of the document in the request. Paths in errors begin with it. */
  path?: string;
  /** What all filters of one request may cost together. By default the document has a budget of its own. */
  budget?: FilterBudget;
}

/** The limits of one document of filters. */
export const FILTER_LIMITS = { conditions: 1_000, depth: 20 } as const;
const MAX_GROUP_TYPES = 5;

/** Counts what filters cost, before anything is compiled. */
export class FilterBudget {
  readonly patterns = new PatternBudget();
  #conditions = 0;

  /** Counts a condition. */
  condition(): void {
    if (++this.#conditions <= FILTER_LIMITS.conditions) return;
    throw new FilterError(`More than ${FILTER_LIMITS.conditions} conditions in one filter`);
  }
}

const PATTERNS: ReadonlySet<Operator> = new Set(['regex', 'not_regex']);

const TYPE_NAMES: ReadonlyMap<string, FilterType> = new Map<string, FilterType>([
  ...FILTER_TYPES.map((name): [string, FilterType] => [name, name]),
  ['static-cohort', 'cohort'],
  ['precalculated-cohort', 'cohort'],
]);

interface Reading {
  strict: boolean;
  budget: FilterBudget;
}

/** Parses a list of conditions, a group, a single condition, or the old form `{"key__operator": value}`. */
export function readFilters(document: unknown, options: ReadOptions = {}): FilterGroup {
  const reading = { strict: options.strict ?? false, budget: options.budget ?? new FilterBudget() };
  const node = readNode(reading, document ?? [], options.path ?? '', 0);
  if (node === null) return all([]);
  return node.kind === 'group' ? node : all([node]);
}

/** Parses one node. Returns null for an incomplete condition, which counts as true. */
function readNode(reading: Reading, document: unknown, path: string, depth: number): FilterNode | null {
  if (depth > FILTER_LIMITS.depth) {
    throw new FilterError(`Filters are nested more than ${FILTER_LIMITS.depth} deep`, path);
  }
  if (Array.isArray(document)) return all(readNodes(reading, document, path, depth));
  if (!isObject(document)) throw new FilterError('A property filter must be an object', path);
  if (isGroup(document)) return readGroup(reading, document, path, depth);
  if (document.key === undefined && document.type === undefined && document.operator === undefined) {
    return readShorthand(reading, document, path);
  }
  return readCondition(reading, document, path);
}

/**
 * Returns whether a document is a group such as `{"type": "OR", "values": …}`. It needs one of the two fields and no
 * `key`.
 */
const isGroup = (document: Record<string, unknown>): boolean =>
  document.key === undefined &&
  (Array.isArray(document.values) || document.type === 'AND' || document.type === 'OR');

function readNodes(reading: Reading, list: unknown[], path: string, depth: number): FilterNode[] {
  return list.flatMap((one, index) => readNode(reading, one, join(path, index), depth + 1) ?? []);
}

function readGroup(
  reading: Reading,
  document: Record<string, unknown>,
  path: string,
  depth: number,
): FilterGroup {
  // Cohorts write "property" for a plain list of conditions.
  const type = document.type === 'property' || document.type === undefined ? 'AND' : document.type;
  if (type !== 'AND' && type !== 'OR') {
    throw new FilterError(`PropertyGroup of unknown type "${shown(type)}"`, join(path, 'type'));
  }
  if (!Array.isArray(document.values)) {
    throw new FilterError('A group of filters needs a list of values', join(path, 'values'));
  }
  return {
    kind: 'group',
    type,
    values: readNodes(reading, document.values, join(path, 'values'), depth),
  };
}

function readShorthand(reading: Reading, document: Record<string, unknown>, path: string): FilterNode {
  const values = Object.entries(document).flatMap(([name, value]) => {
    const end = name.lastIndexOf('__');
    const operator = end > 0 && end + 2 < name.length ? operatorOf(name.slice(end + 2)) : null;
    const condition = operator ? { key: name.slice(0, end), operator, value } : { key: name, value };
    return readCondition(reading, condition, join(path, name), join(path, name)) ?? [];
  });
  return all(values);
}

function readCondition(
  reading: Reading,
  document: Record<string, unknown>,
  path: string,
  valuePath = join(path, 'value'),
): PropertyFilter | null {
  at(path, () => reading.budget.condition());
  // PostHog's name for a condition that was added but not filled in.
  if (document.type === 'empty') return null;
  const type = readType(document.type, path);
  const key = readKey(document.key, path);
  const operator = operatorOf(document.operator);
  if (operator === null) {
    throw new FilterError(`Unknown operator "${shown(document.operator)}"`, join(path, 'operator'));
  }
  if (key === null) {
    if (reading.strict) throw new FilterError('This field is required.', join(path, 'key'));
    return null;
  }
  const needsValue = !VALUELESS.has(operator) && type !== 'hogql';
  const value = needsValue ? readValue(document.value, valuePath) : null;
  if (value === null && needsValue) {
    if (reading.strict) throw new FilterError('This field is required.', valuePath);
    return null;
  }
  if (type === 'cohort') at(valuePath, () => cohortIds(value));
  else if (RANGE_OPERATORS.has(operator)) at(valuePath, () => readRange(value, operator));
  else if (PATTERNS.has(operator)) spendPatterns(reading, value, valuePath);
  return {
    kind: 'property',
    type,
    key,
    operator: type === 'cohort' ? readCohortOperator(operator, path) : operator,
    value,
    groupTypeIndex: type === 'group' ? readGroupIndex(document.group_type_index, path) : null,
    negation: readFlag(document.negation, join(path, 'negation')),
    path,
  };
}

/** Counts the patterns of a condition. Their sizes are known before anything compiles them. */
function spendPatterns({ budget }: Reading, value: FilterValue, path: string): void {
  const list = Array.isArray(value) ? value : [value as Scalar];
  for (const [index, one] of list.entries()) {
    at(list === value ? join(path, index) : path, () =>
      ofPattern(() => budget.patterns.spend(allowedSize(textOf(one)))),
    );
  }
}

/** Parses a key. Returns null if there is none. */
function readKey(key: unknown, path: string): string | null {
  if (key === undefined || key === null || key === '') return null;
  if (typeof key === 'string') return storable(key, join(path, 'key'));
  if (typeof key === 'number' && Number.isFinite(key)) return String(key);
  throw new FilterError('A key must be a string', join(path, 'key'));
}

/** Parses an optional boolean that defaults to false. */
export function readFlag(value: unknown, path: string): boolean {
  if (value === undefined || value === null || value === false) return false;
  if (value === true) return true;
  throw new FilterError('This must be true or false', path);
}

/** Refuses texts that Postgres cannot store. Nothing stored can equal them. */
export function storable(text: string, path: string): string {
  if (isStorableText(text)) return text;
  throw new FilterError('A text must not contain the character 0 or half a surrogate pair', path);
}

function readType(name: unknown, path: string): FilterType {
  if (name === undefined || name === null || name === '') return 'event';
  const type = typeof name === 'string' ? TYPE_NAMES.get(name) : undefined;
  if (!type) throw new FilterError(`Unknown property type "${shown(name)}"`, join(path, 'type'));
  return type;
}

function readCohortOperator(operator: Operator, path: string): Operator {
  if (operator === 'exact' || operator === 'in') return 'in';
  if (operator === 'not_in' || operator === 'is_not') return 'not_in';
  throw new FilterError(`A cohort is tested with in or not_in, not with ${operator}`, join(path, 'operator'));
}

function readGroupIndex(index: unknown, path: string): number {
  const number = typeof index === 'string' && /^\d$/.test(index) ? Number(index) : index;
  if (typeof number === 'number' && Number.isInteger(number) && number >= 0 && number < MAX_GROUP_TYPES) {
    return number;
  }
  throw new FilterError(
    `A group property needs a group_type_index from 0 to ${MAX_GROUP_TYPES - 1}`,
    join(path, 'group_type_index'),
  );
}

function readValue(value: unknown, path: string): FilterValue {
  if (value === undefined || value === null) return null;
  if (!Array.isArray(value)) return readScalar(value, path);
  return value.flatMap((one, index) => (one === null ? [] : [readScalar(one, join(path, index))]));
}

function readScalar(value: unknown, path: string): Scalar {
  if (typeof value === 'boolean') return value;
  if (typeof value === 'string') return storable(value, path);
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  // JSON parsers turn 1e999 into infinity, which stored bytecode cannot hold.
  if (typeof value === 'number') throw new FilterError('This number is too large', path);
  throw new FilterError('A value must be a string, a number, a boolean, or a list of these', path);
}

const join = (path: string, part: string | number): string => (path === '' ? `${part}` : `${path}.${part}`);

/** Prints the beginning of an invalid value for a message. */
const shown = (value: unknown): string =>
  String(JSON.stringify(value) ?? value)
    .replace(/^"|"$/g, '')
    .slice(0, 60);
