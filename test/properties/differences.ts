// The known differences between SQL and the other engines: the rows of docs/properties.md as conditions.
import type { FilterValue, Operator } from '../../properties/index.ts';

export interface Difference {
  /** The beginning of the row in docs/properties.md. */
  row: string;
  applies(operator: Operator, value: string | number | boolean | null, property: unknown): boolean;
}

const EQUAL = ['exact', 'is_not', 'in', 'not_in', 'is_cleaned_path_exact'];
const ORDER = ['gt', 'gte', 'lt', 'lte'];
const RANGE = ['between', 'not_between'];
const SEARCH = ['icontains', 'not_icontains', 'icontains_multi', 'not_icontains_multi'];
const REGEX = ['regex', 'not_regex'];
const DATE = ['is_date_exact', 'is_date_before', 'is_date_after'];

const isText = (value: unknown): value is string => typeof value === 'string';
const isDocument = (value: unknown): boolean => typeof value === 'object' && value !== null;
const isNumeral = (value: unknown): boolean =>
  isText(value) && /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(value);
const asNumber = (operator: Operator, value: unknown): boolean =>
  typeof value === 'number' || RANGE.includes(operator) || (ORDER.includes(operator) && isNumeral(value));
/** A text that only one side reads as a number, or that both read as different numbers. */
const isOddNumber = (text: string): boolean =>
  isNumeral(text)
    ? !Number.isFinite(Number(text)) || (Number(text) === 0 && /[1-9]/.test(text.replace(/e.*/i, '')))
    : !Number.isNaN(Number(text)) || /^\s*[+-]?(?:inf(?:inity)?|0x[\da-f.]+(?:p[+-]?\d+)?)\s*$/i.test(text);
const FOLDED = /[\u0130\u0131\u017f\u212a\u03c2\u03c3\u03a3]/;

export const DIFFERENCES: Difference[] = [
  {
    row: '`false` | equal to any text except `"true"`',
    applies: (operator, value, property) => property === false && EQUAL.includes(operator) && isText(value),
  },
  {
    row: 'a text that only one side reads as a number',
    applies: (operator, value, property) =>
      isText(property) && isOddNumber(property) && (asNumber(operator, value) || ORDER.includes(operator)),
  },
  {
    row: '`true`, `false` | compared with a number',
    applies: (operator, value, property) =>
      typeof property === 'boolean' &&
      (ORDER.includes(operator) || RANGE.includes(operator) || typeof value === 'number'),
  },
  {
    row: 'a number | equal to a text',
    applies: (operator, value, property) =>
      typeof property === 'number' &&
      EQUAL.includes(operator) &&
      isText(value) &&
      Number(value) === property &&
      String(property) !== value,
  },
  {
    row: 'a number | ordered against a text that is not a number',
    applies: (operator, value, property) =>
      typeof property === 'number' && ORDER.includes(operator) && !asNumber(operator, value),
  },
  {
    row: 'a text | ordered against a text that is not a number',
    applies: (operator, value, property) =>
      isText(property) &&
      ORDER.includes(operator) &&
      !asNumber(operator, value) &&
      /[\ud800-\udfff]/.test(`${property}${value}`),
  },
  {
    row: 'lists, objects | `icontains`, `regex`',
    applies: (operator, _value, property) =>
      isDocument(property) && (SEARCH.includes(operator) || REGEX.includes(operator)),
  },
  {
    row: 'lists, objects | equal to a text',
    applies: (operator, value, property) =>
      isDocument(property) && EQUAL.includes(operator) && value === JSON.stringify(property),
  },
  {
    row: 'lists, objects | ordered',
    applies: (operator, _value, property) =>
      isDocument(property) && (ORDER.includes(operator) || RANGE.includes(operator)),
  },
  {
    row: '`""` | `regex` that matches the empty text',
    applies: (operator, _value, property) => property === '' && REGEX.includes(operator),
  },
  {
    row: 'any text with a line break | `regex` with a dot',
    applies: (operator, value, property) =>
      isText(property) && property.includes('\n') && REGEX.includes(operator) && String(value).includes('.'),
  },
  {
    row: 'letters whose case depends on language or context',
    applies: (operator, value, property) =>
      (SEARCH.includes(operator) || REGEX.includes(operator)) && FOLDED.test(`${value}${property}`),
  },
  {
    row: 'dates with microseconds',
    applies: (operator, _value, property) =>
      isText(property) && DATE.includes(operator) && /[.,]\d{4,}/.test(property),
  },
  {
    row: 'dates with an offset of 16 hours or more',
    applies: (operator, _value, property) =>
      isText(property) && DATE.includes(operator) && /[+-](?:1[6-9]|2\d):?\d\d$/.test(property),
  },
  {
    row: 'dates surrounded by blanks that are not ASCII',
    applies: (operator, _value, property) =>
      isText(property) &&
      DATE.includes(operator) &&
      property.trim() !== property.replace(/^[ \t-\r]+|[ \t-\r]+$/g, ''),
  },
];

/** Whether SQL may have another result, according to one of the rows. */
export function isKnownDifference(operator: Operator, value: FilterValue, property: unknown): boolean {
  const values =
    Array.isArray(value) && value.length > 0 ? value : [value as string | number | boolean | null];
  return DIFFERENCES.some(({ applies }) => values.some((one) => applies(operator, one, property)));
}
