// The written list of what an SDK decides otherwise than the server, by filter and property. docs/flags.md tells of each.
import { numberOf } from '../../../properties/values.ts';
import { parseDate } from '../../../values/dates.ts';

export interface Exception {
  /** As docs/flags.md calls it. */
  name: string;
  /** The SDKs that have it. */
  sdks: readonly ('node' | 'python')[];
  applies(operator: string, value: unknown, property: unknown): boolean;
}

const NUMBERS = /^(?:[gl]te?|min|max)$/;
const TEXTS = /icontains|_with$|regex/;
const DATES = /^is_date_(?:before|after)$/;
const PLAIN_VERSION = /^v?\d+(?:\.\d+){0,2}(?:\.\*)?$/i;
const isDate = (text: unknown) => typeof text === 'string' && parseDate(text, 'UTC') !== null;

export const EXCEPTIONS: readonly Exception[] = [
  {
    name: 'numbers',
    sdks: ['node'],
    applies: (operator, value, property) =>
      NUMBERS.test(operator) && (numberOf(value) === null || numberOf(property) === null),
  },
  {
    name: 'lists and objects as texts',
    sdks: ['node'],
    applies: (operator, _value, property) =>
      TEXTS.test(operator) && typeof property === 'object' && property !== null,
  },
  {
    name: 'null in lists of texts',
    sdks: ['node'],
    applies: (operator, _value, property) => /_multi$/.test(operator) && property === null,
  },
  {
    name: 'dates',
    sdks: ['node'],
    applies: (operator, _value, property) => DATES.test(operator) && property !== null && !isDate(property),
  },
  {
    name: 'versions',
    sdks: ['node', 'python'],
    applies: (operator, value, property) =>
      operator.startsWith('semver_') && [value, property].some((one) => !PLAIN_VERSION.test(String(one))),
  },
];

export interface Filters {
  groups: { properties: Filter[]; aggregation_group_type_index?: number | null }[];
  multivariate?: unknown;
  early_exit?: boolean;
  feature_enrollment?: boolean;
}
export interface Filter {
  type: string;
  key: string;
  operator?: string;
  value?: unknown;
  group_type_index?: number;
}

/** What an SDK decides otherwise because of the flag as a whole. */
export const FLAG_EXCEPTIONS: readonly {
  name: string;
  sdks: Exception['sdks'];
  /** `asked`: the flags that it asks about, directly or through others. */
  applies(flag: Filters, asked: readonly Filters[]): boolean;
}[] = [
  {
    name: 'early access',
    sdks: ['node'],
    applies: (flag, asked) => [flag, ...asked].some((one) => one.feature_enrollment === true),
  },
  {
    name: 'a flag that asks about a flag of groups',
    sdks: ['python'],
    applies: (_flag, asked) =>
      asked.some((one) => one.groups.some((group) => typeof group.aggregation_group_type_index === 'number')),
  },
];

/**
 * An SDK leaves out a condition that it cannot decide. Where a later one matches, it counts, though the earlier one might
 * have decided for another variant or ended the evaluation.
 */
export const SKIPPED_CONDITION = 'a condition that the SDK cannot decide';

/** Whether an SDK may be unable to decide a filter. */
export function mayBeUndecided(operator: string, value: unknown, property: unknown): boolean {
  if (property === undefined || /_multi$|^is_date_exact$/.test(operator)) return true;
  if (EXCEPTIONS.some((one) => one.applies(operator, value, property))) return true;
  // JavaScript has no integers, so posthog-node does not know how to write a number.
  const isText = (one: unknown) => typeof one === 'string' || typeof one === 'boolean' || one === null;
  if (operator === 'exact' || operator === 'is_not') return ![value, property].flat().every(isText);
  return TEXTS.test(operator);
}
