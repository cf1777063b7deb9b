// Checks the filters of a cohort before they are stored. What could match nobody by mistake is refused, with its place.

import {
  compileRegex,
  FilterBudget,
  FilterError,
  isReadableDate,
  isReadableVersion,
  operatorOf,
  readFilters,
} from '../properties/index.ts';
import { refuse } from '../refusals.ts';
import { isObject } from '../values/json-object.ts';
import { COHORT_LIMITS } from './rules/limits.ts';

type Fields = Record<string, unknown>;

const wrong = (message: string, code = 'invalid_input', reason: string | null = null) =>
  refuse.invalid('filters', message, { code, reason });
const shown = (value: unknown): string => (JSON.stringify(value) ?? 'nothing').slice(0, 60);

const TEXT_OPERATORS = new Set(['regex', 'not_regex']);
const REFUSED = new Set(['in', 'not_in', 'flag_evaluates_to', 'is_cleaned_path_exact']);

function checkCondition(condition: Fields, place: string, asks: Set<number>): void {
  const { type = 'person', key, value, operator: given } = condition;
  if (type === 'behavioral' || type === 'realtime') {
    throw wrong(`${place}: conditions on what persons did are not supported.`, 'behavioral_cohort_found');
  }
  if (type === 'cohort' || type === 'static-cohort') {
    const id = typeof value === 'string' && /^\d{1,10}$/.test(value) ? Number(value) : value;
    if (!Number.isInteger(id) || (id as number) < 1 || (id as number) >= 2 ** 31) {
      throw wrong(`Invalid Cohort ID in filter: ${place}.value is ${shown(value)}.`);
    }
    if (given !== undefined && given !== null && !['in', 'not_in', 'exact'].includes(String(given))) {
      throw wrong(`${place}.operator: a cohort is tested with in or not_in, not with ${shown(given)}.`);
    }
    asks.add(id as number);
    return;
  }
  if (type !== 'person') throw wrong(`${place}.type must be person or cohort, not ${shown(type)}.`);
  if ((typeof key !== 'string' && typeof key !== 'number') || key === '') {
    throw wrong(`${place}.key is required.`);
  }
  const operator = operatorOf(given);
  if (operator === null || REFUSED.has(operator)) {
    throw wrong(`${place}.operator: unknown operator ${shown(given)}.`);
  }
  if (operator === 'is_set' || operator === 'is_not_set') return;
  if (value === undefined || value === null) {
    const message = 'Missing required keys for person filter: value';
    throw wrong(message, 'invalid_input', `${place}.value is required.`);
  }
  const values = Array.isArray(value) ? value : [value];
  if (TEXT_OPERATORS.has(operator)) {
    try {
      compileRegex(String(value));
    } catch (error) {
      if (error instanceof FilterError) throw wrong(`${place}.value: ${error.message}.`);
      throw error;
    }
  }
  if (operator.startsWith('is_date_') && !(typeof value === 'string' && isReadableDate(value))) {
    throw wrong(`${place}.value must be a date such as 2026-01-31 or -7d, not ${shown(value)}.`);
  }
  if (operator.startsWith('semver_') && !values.every((one) => isReadableVersion(operator, String(one)))) {
    throw wrong(`${place}.value must be a version such as 1.2.3, not ${shown(value)}.`);
  }
}

function checkNode(node: unknown, place: string, asks: Set<number>): void {
  if (!isObject(node)) throw wrong(`${place} must be an object, not ${shown(node)}.`);
  if (!Array.isArray(node.values)) {
    if (node.type === 'AND' || node.type === 'OR') throw wrong(`${place}.values must be a list.`);
    checkCondition(node, place, asks);
    return;
  }
  if (!['AND', 'OR', 'property'].includes(String(node.type))) {
    throw wrong(`${place}.type must be AND or OR, not ${shown(node.type)}.`);
  }
  for (const [index, one] of node.values.entries()) checkNode(one, `${place}.values.${index}`, asks);
}

/** Checks filters as a whole. Returns the ids of the cohorts that they name. */
export function checkCohortFilters(filters: unknown): number[] {
  if (!isObject(filters) || !isObject(filters.properties)) {
    throw wrong("Must contain a 'properties' key with type and values");
  }
  const bytes = Buffer.byteLength(JSON.stringify(filters));
  if (bytes > COHORT_LIMITS.bytes) {
    throw wrong(`The filters have ${bytes} bytes; at most ${COHORT_LIMITS.bytes} are allowed.`, 'max_length');
  }
  const asks = new Set<number>();
  try {
    // It counts conditions, levels and patterns before anything recurses or is compiled.
    const plain = JSON.parse(JSON.stringify(filters.properties), (key, value) =>
      key === 'type' && value === 'behavioral' ? 'person' : value,
    );
    readFilters(plain, { path: 'properties', budget: new FilterBudget() });
    checkNode(filters.properties, 'properties', asks);
  } catch (error) {
    if (error instanceof FilterError) throw wrong(`${error.path}: ${error.message}.`);
    throw error;
  }
  return [...asks];
}
