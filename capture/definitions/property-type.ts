/** What the values of a property are, as far as one value tells. */
export type PropertyType = 'String' | 'Numeric' | 'Boolean' | 'DateTime';

/** Values of these properties are texts, whatever the first one looks like: the next one may be another text. */
const TEXTS = /^(?:utm_|\$initial_utm_|\$feature\/|\$survey_response)|^\$feature_flag_response$/;
/** Names of properties whose numbers may be times. */
const TIMES = /time|date|[_-]at|createdat|updatedat/;
const SIX_MONTHS = 15_768_000;

/** `2026-01-31` or `31/01/2026`, with or without a time. */
const DATE =
  /^(?:\d{4}[/-][0-2]\d[/-][0-3]\d|[0-2]\d[/-][0-3]\d[/-]\d{4})(?:[ T][0-2]\d:[0-6]\d:[0-6]\d.*)?$/;
/** `2026-01-31T12:00:00Z`, in any case and with any number of digits in the fraction. */
const RFC_3339 = /^\d{4}-\d\d-\d\d[t ]\d\d:\d\d:\d\d(?:\.\d+)?(?:z|[+-]\d\d:\d\d)$/i;
/** `Sat, 31 Jan 2026 12:00:00 +0000`. */
const RFC_2822 =
  /^(?:(?:mon|tue|wed|thu|fri|sat|sun), *)?\d{1,2} (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec) \d{4} \d\d:\d\d(?::\d\d)? (?:[+-]\d{4}|ut|gmt|[ecmp][sd]t)$/i;
/** No date is longer, unless a remark stands behind it. */
const LONGEST = 1_000;

function isDate(text: string): boolean {
  if (text.length > LONGEST || !/\d/.test(text)) return false;
  return DATE.test(text) || RFC_3339.test(text) || RFC_2822.test(text);
}

/** Tells the type of a property from its name and one of its values. Null: the value has none of these types. */
export function propertyTypeOf(name: string, value: unknown, now: number): PropertyType | null {
  const lower = name.toLowerCase();
  if (TEXTS.test(lower)) return 'String';
  switch (typeof value) {
    case 'boolean':
      return 'Boolean';
    case 'number': {
      const isRecent = Number.isInteger(value) && value >= now / 1000 - SIX_MONTHS;
      return isRecent && TIMES.test(lower) ? 'DateTime' : 'Numeric';
    }
    case 'string': {
      if (value.length <= 10 && /^(?:true|false|TRUE|FALSE)$/.test(value.trim())) return 'Boolean';
      return isDate(value.trim()) ? 'DateTime' : 'String';
    }
    default:
      return null;
  }
}
