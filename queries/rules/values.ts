import { isObject } from '../../values/json-object.ts';

/** Asks for the values of a property of events, or of a column, to complete what somebody types. */
export interface ValuesRequest {
  /** The name of the property or of the column. */
  key: string;
  isColumn: boolean;
  /** A text that the values have in them, in any case. Empty: any. */
  search: string;
  /** Only events of these names. Empty: all. */
  events: readonly string[];
  /** Conditions on other properties: each has one of its texts as its value, in any case. */
  conditions: readonly { name: string; values: readonly string[] }[];
}

/** The columns of events that have values to choose from. */
export const VALUE_COLUMNS = ['event', 'distinct_id', 'person_id', 'session_id', 'window_id'] as const;

/** So many values are told. */
export const MOST_VALUES = 10;

/**
 * Reads a condition as it stands in a URL. A list in JSON names several values, other JSON one, and what is no JSON stands for
 * itself. Without a value, nothing has it.
 */
export function conditionValues(text: string): string[] {
  let parsed: unknown = text;
  try {
    parsed = JSON.parse(text);
  } catch {}
  const values = Array.isArray(parsed) ? parsed : [parsed];
  return values
    .filter((one) => one !== null && one !== '')
    .map((one) => (typeof one === 'string' ? one : JSON.stringify(one)).toLowerCase());
}

/** A value as it is shown. Keys of objects are sorted, so that equal ones look equal. */
export function shownValue(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), (_, value: unknown) =>
      isObject(value)
        ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
        : value,
    );
  } catch {
    return text;
  }
}
