// Checks the filters of a flag before they are stored, and writes them in one form. What the evaluation could not read is
// refused here, with its place.

import {
  compileRegex,
  FilterBudget,
  FilterError,
  isReadableDate,
  isReadableVersion,
  type Operator,
  operatorOf,
  readFilters,
} from '../../properties/index.ts';
import { refuse } from '../../refusals.ts';
import { ExactNumber, isExactObject } from '../../values/exact-json.ts';
import { isObject } from '../../values/json-object.ts';
import { own } from '../engine/definition.ts';
import { FLAG_LIMITS } from '../rules/limits.ts';

type Fields = Record<string, unknown>;

/** What a checked document names elsewhere. */
export interface CheckedFilters {
  filters: Fields;
  cohorts: number[];
  /** The flags that it asks about. */
  asks: number[];
}

export interface FilterOptions {
  /** A new flag needs a condition set. */
  isNew: boolean;
  isRemoteConfiguration: boolean;
}

const VARIANT_KEY = /^[a-zA-Z0-9_./-]+$/;
const TEXT_OPERATORS = new Set([
  ...['icontains', 'not_icontains', 'starts_with', 'not_starts_with', 'ends_with', 'not_ends_with'],
  ...['regex', 'not_regex'],
]);
const NUMBER_OPERATORS = new Set(['gt', 'gte', 'lt', 'lte']);
const REFUSED_OPERATORS = new Set(['between', 'not_between', 'is_cleaned_path_exact']);
const TYPES = ['person', 'cohort', 'group', 'flag'];
/** Characters of a value that a message names. */
const LONGEST_NAMED = 200;

/** A refusal. Where `message` is a sentence that clients know, `reason` says the place, the value and what is allowed. */
const wrong = (message: string, code = 'invalid_input', reason: string | null = null) =>
  refuse.invalid('filters', message, { code, reason });

const wrongValue = (message: string, reason: string) => wrong(message, 'invalid_value', reason);
const wrongOperator = (message: string, reason: string) => wrong(message, 'invalid_operator', reason);

const shown = (value: unknown): string => (JSON.stringify(value) ?? 'nothing').slice(0, 60);

/** A number that keeps its spelling, as a plain one. */
const plainNumber = (value: unknown): unknown => (value instanceof ExactNumber ? value.valueOf() : value);

/** What kind of value this is, in the words that clients know. */
function kindOf(given: unknown): string {
  const value = plainNumber(given);
  if (value === null || value === undefined) return 'null';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'number') return Number.isInteger(given) ? 'int' : 'float';
  if (typeof value === 'string') return 'str';
  return Array.isArray(value) ? 'list' : 'dict';
}

/** A value in the spelling that clients know from messages: texts as they are, and lists as in `['a', True]`. */
function spelled(given: unknown, isInside = false): string {
  const value = plainNumber(given);
  if (typeof value === 'string') return isInside ? `'${value}'` : value;
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (value === null || value === undefined) return 'None';
  if (!Array.isArray(value) || isInside) return shown(value);
  return `[${value
    .slice(0, LONGEST_NAMED)
    .map((one) => spelled(one, true))
    .join(', ')}]`;
}

const named = (value: unknown) => spelled(value).slice(0, LONGEST_NAMED);

function percentage(value: unknown, place: string, { orNull = false } = {}): void {
  const number = plainNumber(value);
  if (orNull && (number === undefined || number === null)) return;
  if (typeof number !== 'number' || !Number.isFinite(number)) {
    throw wrong(`${place} must be a number${orNull ? ' or null' : ''}, got ${kindOf(value)}`);
  }
  if (number < 0 || number > 100) throw wrong(`${place} must be between 0 and 100, got ${number}`);
}

function recordAt(value: unknown, place: string): Fields {
  if (isExactObject(value)) return value;
  throw wrong(`${place} must be an object, not ${shown(value)}.`);
}

function listAt(value: unknown, place: string, most: number): unknown[] {
  if (!Array.isArray(value)) throw wrong(`${place} must be a list, not ${shown(value)}.`);
  if (value.length > most) throw wrong(`${place} has ${value.length} entries; at most ${most} are allowed.`);
  return value;
}

function groupIndex(value: unknown, place: string): number | null {
  if (value === null || value === undefined) return null;
  if (!Number.isInteger(value)) throw wrong(`${place} must be an integer or null, got ${kindOf(value)}`);
  if ((value as number) >= 0 && (value as number) <= 4) return value as number;
  throw wrong(`${place} must be a number from 0 to 4 or null, not ${shown(value)}.`);
}

/** Refuses what would count as false without anybody seeing it. */
function switchAt(filters: Fields, name: string): void {
  const value = own(filters, name);
  if (value === undefined || value === null || typeof value === 'boolean') return;
  throw wrong(`${name} must be a boolean or null, got ${kindOf(value)}`);
}

/** Checks a pattern. What reading it says is told too. */
function checkPattern(pattern: string, place: string): void {
  try {
    compileRegex(pattern);
  } catch (error) {
    if (error instanceof FilterError)
      throw wrongValue(`${place}: invalid regex pattern`, `${error.message}.`);
    throw error;
  }
}

/** Checks a value that only some operators read. */
function checkValue(operator: string, value: unknown, place: string): void {
  const expects = (what: string) => `${place} must be ${what}, not ${shown(value)}.`;
  if (operator === 'icontains_multi' || operator === 'not_icontains_multi') {
    if (Array.isArray(value)) return;
    throw wrongValue(`${operator} operator requires a list of values`, expects('a list'));
  }
  const unfit = `Invalid value for operator ${operator}: ${named(value)}`;
  if (TEXT_OPERATORS.has(operator) && typeof value !== 'string') {
    throw wrongValue(unfit, expects('a string'));
  }
  if (NUMBER_OPERATORS.has(operator) && (Array.isArray(value) || typeof value === 'boolean')) {
    throw wrongValue(unfit, expects('a number or a string'));
  }
  if (operator === 'regex' || operator === 'not_regex') checkPattern(String(value), place);
  if (operator.startsWith('is_date_') && !(typeof value === 'string' && isReadableDate(value))) {
    const allowed = expects('a date such as 2026-01-31 or -7d');
    throw wrong(`Invalid date value: ${named(value)}`, 'invalid_date', allowed);
  }
  if (!operator.startsWith('semver_')) return;
  const allowed = expects('a version such as 1.2.3');
  if (typeof value !== 'string') {
    throw wrongValue(`Invalid value for operator ${operator}: expected a semver string`, allowed);
  }
  if (!isReadableVersion(operator, value)) {
    throw wrongValue(`Invalid semver value for operator ${operator}: ${named(value)}`, allowed);
  }
}

interface Found {
  cohorts: Set<number>;
  asks: Set<number>;
}

function idOf(value: unknown): number | undefined {
  const id = typeof value === 'string' && /^\d{1,10}$/.test(value) ? Number(value) : value;
  return Number.isInteger(id) && (id as number) > 0 && (id as number) < 2 ** 31 ? (id as number) : undefined;
}

function supportedOperator(given: unknown, place: string): Operator {
  const operator = operatorOf(given);
  if (operator === null) {
    throw wrongOperator(`Invalid operator: ${named(given)}`, `${place}.operator is none that flags know.`);
  }
  if (!REFUSED_OPERATORS.has(operator)) return operator;
  const message = `Unsupported operator for feature flags: ${operator}`;
  throw wrong(message, 'unsupported_operator', `${place}.operator: flags do not support ${operator}.`);
}

/** Checks a filter and writes it as it is stored. */
function checkProperty(document: unknown, group: number | null, place: string, found: Found): Fields {
  const property = { ...recordAt(document, place) };
  // What answers add is taken back.
  delete property.cohort_name;
  delete property.group_key_names;
  const type = own(property, 'type');
  if (typeof type !== 'string' || !TYPES.includes(type)) {
    throw wrong(`${place}.type must be one of ${TYPES.join(', ')}, not ${shown(type)}.`);
  }
  const key = own(property, 'key');
  if (typeof key === 'number') property.key = String(key);
  else if (typeof key !== 'string' || key === '') throw wrong(`${place}.key is required.`);
  const given = own(property, 'operator');
  const operator = supportedOperator(given, place);
  // What is stored has the name that SDKs know.
  if (given !== undefined && given !== null && given !== '') property.operator = operator;
  const value = own(property, 'value');
  if ((operator === 'in' || operator === 'not_in') !== (type === 'cohort')) {
    const allowed = `${place}.operator: in and not_in are for cohorts, and cohorts take no other operator.`;
    if (type !== 'cohort') {
      const message = `The '${operator}' operator is only valid for cohort properties, not '${type}' properties.`;
      throw wrongOperator(message, allowed);
    }
    if (given !== undefined) throw wrong(allowed, 'invalid_operator');
  }
  if ((operator === 'flag_evaluates_to') !== (type === 'flag')) {
    const allowed = `${place}.operator: flag_evaluates_to is for flags, and flags take no other operator.`;
    if (type !== 'flag') throw wrong(allowed, 'invalid_operator');
    throw wrong("Flag properties must use the 'flag_evaluates_to' operator", 'invalid_input', allowed);
  }
  const ofGroup = groupIndex(own(property, 'group_type_index'), `${place}.group_type_index`);
  const unfit = (why: string, reason: string) =>
    wrong(`Filters are not valid (${why})`, 'invalid_input', `${place}: ${reason}`);
  if (group === null && type === 'group') {
    throw unfit(
      'person-aggregated conditions can only use person, cohort, and flag properties',
      'a condition about persons takes no properties of groups.',
    );
  }
  if (group !== null && (type !== 'group' || ofGroup !== group)) {
    throw unfit(
      type === 'group'
        ? "group properties must match the condition set's group type"
        : 'group-aggregated conditions can only use group properties',
      `a condition about groups of type ${group} takes only properties of such groups.`,
    );
  }
  if (type === 'cohort') {
    const id = idOf(value);
    if (id === undefined) throw wrong(`${place}.value must be the id of a cohort, not ${shown(value)}.`);
    found.cohorts.add(id);
    return property;
  }
  if (type === 'flag') {
    const id = idOf(property.key);
    if (id === undefined) {
      throw wrong(
        `Flag dependencies must reference flag IDs (integers), not flag keys. Invalid reference: '${named(property.key)}'`,
        'invalid_input',
        `${place}.key must be the id of a flag, not ${shown(property.key)}.`,
      );
    }
    if (typeof value !== 'boolean' && (typeof value !== 'string' || value === '')) {
      throw wrong(`${place}.value must be true, false or the key of a variant, not ${shown(value)}.`);
    }
    found.asks.add(id);
    return property;
  }
  if (operator === 'is_set' || operator === 'is_not_set') return property;
  if (value === undefined || value === null) throw wrong(`${place}.value is required.`);
  checkValue(operator, value, `${place}.value`);
  return property;
}

function checkVariants(filters: Fields): Set<string> {
  const multivariate = own(filters, 'multivariate');
  if (multivariate === undefined || multivariate === null) return new Set();
  const place = 'multivariate.variants';
  const variants = listAt(
    own(recordAt(multivariate, 'multivariate'), 'variants'),
    place,
    FLAG_LIMITS.variants,
  );
  if (variants.length === 0) throw wrong(`${place} must not be empty.`);
  const keys = new Set<string>();
  let sum = 0;
  for (const [index, one] of variants.entries()) {
    const variant = recordAt(one, `${place}[${index}]`);
    const key = own(variant, 'key');
    if (typeof key !== 'string' || !VARIANT_KEY.test(key) || key.length > FLAG_LIMITS.keyCharacters) {
      throw wrong(
        `${place}[${index}].key may have letters, digits and _ . / - and at most ${FLAG_LIMITS.keyCharacters} characters.`,
      );
    }
    if (keys.has(key)) throw wrong(`${place}: two variants have the key ${shown(key)}.`);
    keys.add(key);
    percentage(own(variant, 'rollout_percentage'), `${place}[${index}].rollout_percentage`);
    sum += Number(own(variant, 'rollout_percentage'));
  }
  if (Math.abs(sum - 100) > 1e-6) {
    const message = 'Invalid variant definitions: Variant rollout percentages must sum to 100.';
    throw wrong(message, 'invalid_input', `The percentages of ${place} sum to ${sum}.`);
  }
  return keys;
}

/** Checks payloads and writes each as the JSON text that clients get. */
function checkPayloads(filters: Fields, variants: ReadonlySet<string>): Fields | undefined {
  const payloads = own(filters, 'payloads');
  if (payloads === undefined || payloads === null) return undefined;
  const checked: Fields = {};
  if (!isExactObject(payloads)) {
    throw wrong(
      'Payloads must be passed as a dictionary',
      'invalid_input',
      `payloads is ${shown(payloads)}.`,
    );
  }
  for (const [key, value] of Object.entries(payloads)) {
    const isKnown = variants.size > 0 ? variants.has(key) : key === 'true';
    if (!isKnown) {
      throw wrong(
        variants.size > 0
          ? 'Payload keys must match a variant key for multivariate flags'
          : "Payload keys must be 'true' for boolean flags",
        'invalid_input',
        `payloads has the key ${shown(key)}.`,
      );
    }
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    try {
      JSON.parse(text);
    } catch {
      throw wrong('Payload value is not valid JSON', 'invalid_input', `payloads.${key} is ${shown(text)}.`);
    }
    checked[key] = text;
  }
  return checked;
}

function checkHoldout(filters: Fields): void {
  const holdout = own(filters, 'holdout');
  if (holdout === undefined || holdout === null) return;
  const { id, exclusion_percentage: share } = recordAt(holdout, 'holdout');
  if (!Number.isInteger(id)) throw wrong(`holdout.id must be a whole number, not ${shown(id)}.`);
  percentage(share, 'holdout.exclusion_percentage');
}

/** Checks what the filters cost, and what every kind of filter shares. The numbers need not keep their spelling here. */
function checkCosts(groups: readonly unknown[]): void {
  const budget = new FilterBudget();
  const plain: unknown[] = JSON.parse(JSON.stringify(groups));
  for (const [index, group] of plain.entries()) {
    const properties = (isObject(group) && own(group, 'properties')) || [];
    for (const [at, property] of (Array.isArray(properties) ? properties : []).entries()) {
      if (!isObject(property)) continue;
      supportedOperator(own(property, 'operator'), `groups[${index}].properties[${at}]`);
    }
    readFilters(properties, { path: `groups.${index}.properties`, budget });
  }
}

/** A path as messages write it: `groups[0].properties[1]`. */
const inBrackets = (path: string) => path.replace(/\.(\d+)(?=\.|$)/g, '[$1]');

const EVERYBODY = { properties: [], rollout_percentage: 100, aggregation_group_type_index: null };

/** Checks filters as a whole. Throws a refusal that names what is wrong. */
export function checkFilters(document: unknown, options: FilterOptions): CheckedFilters {
  const filters = { ...recordAt(document, 'filters') };
  const bytes = Buffer.byteLength(JSON.stringify(filters));
  if (bytes > FLAG_LIMITS.bytes) {
    throw wrong(
      `Feature flag filters exceed maximum size of ${FLAG_LIMITS.bytes} bytes. Current size: ${bytes} bytes. Please simplify conditions or reduce payload sizes.`,
    );
  }
  if (Object.hasOwn(filters, 'version')) throw wrong('filters.version is reserved.');
  // Forms that nobody writes any more.
  delete filters.super_groups;
  delete filters.holdout_groups;
  const found: Found = { cohorts: new Set(), asks: new Set() };
  try {
    const given = listAt(own(filters, 'groups') ?? [], 'groups', FLAG_LIMITS.conditions);
    if (options.isNew && given.length === 0 && !options.isRemoteConfiguration) {
      throw wrong('Feature flags must have at least one condition set (group).');
    }
    checkCosts(given);
    const variants = checkVariants(filters);
    const payloads = checkPayloads(filters, variants);
    checkHoldout(filters);
    const flagGroup = groupIndex(
      own(filters, 'aggregation_group_type_index'),
      'aggregation_group_type_index',
    );
    switchAt(filters, 'early_exit');
    switchAt(filters, 'feature_enrollment');
    const groups = given.map((one, index) => checkGroup(one, index, { variants, flagGroup, found }));
    const kinds = new Set(groups.map((one) => one.aggregation_group_type_index as number | null));
    return {
      filters: {
        ...filters,
        groups: options.isRemoteConfiguration ? [EVERYBODY] : groups,
        ...(payloads ? { payloads } : {}),
        aggregation_group_type_index:
          kinds.size === 1 ? ([...kinds][0] ?? null) : groups.length ? null : flagGroup,
      },
      cohorts: [...found.cohorts],
      asks: [...found.asks],
    };
  } catch (error) {
    if (error instanceof FilterError) {
      throw wrong(`${error.path === '' ? '' : `${inBrackets(error.path)}: `}${error.message}.`);
    }
    throw error;
  }
}

interface GroupContext {
  variants: ReadonlySet<string>;
  flagGroup: number | null;
  found: Found;
}

/** Checks a condition set, and says of it what it is about. */
function checkGroup(document: unknown, index: number, { variants, flagGroup, found }: GroupContext): Fields {
  const place = `groups[${index}]`;
  const group = { ...recordAt(document, place) };
  const about = Object.hasOwn(group, 'aggregation_group_type_index')
    ? groupIndex(group.aggregation_group_type_index, `${place}.aggregation_group_type_index`)
    : flagGroup;
  const rollout = own(group, 'rollout_percentage');
  percentage(rollout, `${place}.rollout_percentage`, { orNull: true });
  const variant = own(group, 'variant');
  if (variant !== undefined && variant !== null && typeof variant !== 'string') {
    throw wrong(`${place}.variant must be a string or null, got ${kindOf(variant)}`);
  }
  if (typeof variant === 'string' && variant !== '' && !variants.has(variant)) {
    const message = 'Filters are not valid (variant override does not exist)';
    throw wrong(message, 'invalid_input', `${place}.variant: the flag has no variant ${shown(variant)}.`);
  }
  const properties = own(group, 'properties') ?? [];
  group.properties = listAt(properties, `${place}.properties`, FLAG_LIMITS.conditions).map((one, at) =>
    checkProperty(one, about, `${place}.properties[${at}]`, found),
  );
  group.aggregation_group_type_index = about;
  return group;
}
