/** @import { Value } from './types.ts' */
import { isCallable, isClosure, isDate, isDateTime, isError } from './values.js';

// What library functions say about wrong arguments. The machine and browsers share these sentences.

/**
 * Describes the type of a value.
 * @type {(value: Value) => string}
 */
export function kindOf(value) {
  if (value === null || value === undefined) return 'null';
  if (typeof value === 'string') return 'a text';
  if (typeof value === 'number') return 'a number';
  if (typeof value === 'boolean') return 'a boolean';
  if (Array.isArray(value)) return Object(value).__isHogTuple ? 'a tuple' : 'a list';
  if (isDateTime(value)) return 'a time';
  if (isDate(value)) return 'a date';
  if (isError(value)) return 'an error';
  return isClosure(value) || isCallable(value) ? 'a function' : 'a dictionary';
}

/**
 * Returns whether a value is what a function wants.
 * @type {(value: Value, wanted: string) => boolean}
 */
export function fits(value, wanted) {
  if (wanted === 'a text') return typeof value === 'string';
  if (wanted === 'a time zone') return typeof value === 'string' || value === null || value === undefined;
  if (wanted === 'a time') return isDateTime(value);
  if (wanted === 'a date or a time') return isDate(value) || isDateTime(value);
  if (wanted === 'a number') {
    return (
      typeof value === 'number' ||
      isDate(value) ||
      (typeof value === 'string' && value.trim() !== '' && Number.isFinite(Number(value)))
    );
  }
  if (wanted === 'a list of two or more texts') {
    return Array.isArray(value) && value.length > 1 && value.every((one) => typeof one === 'string');
  }
  try {
    if (wanted === 'valid JSON') JSON.parse(value);
    else if (wanted === 'an encoded text') decodeURIComponent(value);
    else if (wanted === 'a text without half characters') encodeURIComponent(value);
    return true;
  } catch {
    return false;
  }
}

/**
 * Returns a sentence about the first argument that does not fit, or null if all do.
 * @type {(name: string, args: Value[], wanted: (string | null)[]) => string | null}
 */
export function complaint(name, args, wanted) {
  const at = wanted.findIndex((one, i) => one !== null && i < args.length && !fits(args[i], one));
  if (at === -1) return null;
  const place = ['first', 'second', 'third'][at];
  const kind = kindOf(args[at]);
  const given = wanted[at] === 'valid JSON' || kind === 'a text' ? '' : `, not ${kind}`;
  return `${name} needs ${wanted[at]} as its ${place} argument${given}`;
}

/**
 * Returns the message for an error that a function threw. JavaScript's own words never reach a program.
 * @type {(name: string, args: Value[], wanted: (string | null)[], error: Value) => string}
 */
export function explained(name, args, wanted, error) {
  const wrong = complaint(name, args, wanted);
  if (wrong !== null) return wrong;
  if (error?.name === 'Error' || error?.name === 'HogFailure') return error.message;
  return `${name} can not work with ${args.map(kindOf).join(', ') || 'these arguments'}`;
}

/**
 * Rounds a number to decimals, half up as it is written.
 * @type {(value: Value, digits: Value) => number}
 */
export function rounded(value, digits) {
  if (!Number.isFinite(digits) || Math.trunc(digits) === 0) return Math.round(value);
  const places = Math.max(-30, Math.min(30, Math.trunc(digits)));
  /** @type {(number: number, by: number) => number} */
  const moved = (number, by) => {
    const [digitsOf, exponent = '0'] = String(number).split('e');
    return Number(`${digitsOf}e${Number(exponent) + by}`);
  };
  const number = Number(value);
  return Number.isFinite(number) ? moved(Math.round(moved(number, places)), -places) : number;
}

/**
 * Compares two sort keys: numbers and dates first, then texts, then other values, then null.
 * @type {(a: Value, b: Value) => number}
 */
export function byKey(a, b) {
  /** @type {(value: Value) => [number, Value]} */
  const keyOf = (value) => {
    if (value === null || value === undefined || Number.isNaN(value)) return [3, 0];
    if (typeof value === 'number' || typeof value === 'boolean') return [0, Number(value)];
    if (isDateTime(value)) return [0, value.dt];
    if (isDate(value)) return [0, Date.UTC(value.year, value.month - 1, value.day) / 1000];
    return typeof value === 'string' ? [1, value] : [2, 0];
  };
  const [[rank, x], [other, y]] = [keyOf(a), keyOf(b)];
  if (rank !== other) return rank - other;
  return x === y ? 0 : x < y ? -1 : 1;
}

/**
 * Sorts a list by the keys of its elements. In reverse, null stays last.
 * @type {(list: Value[], keys: Value[], isReverse: boolean) => Value[]}
 */
export function sortedBy(list, keys, isReverse) {
  /** @type {(at: number) => boolean} */
  const isLast = (at) => keys[at] === null || keys[at] === undefined || Number.isNaN(keys[at]);
  return list
    .map((_one, at) => at)
    .sort((a, b) => {
      const order = byKey(keys[a], keys[b]);
      return isReverse && !isLast(a) && !isLast(b) ? -order : order;
    })
    .map((at) => list[at]);
}

/**
 * Removes half a surrogate pair at either end of a text.
 * @type {(text: string) => string}
 */
export function withoutHalves(text) {
  return text.replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, '');
}

/**
 * Replaces the escapes of halves of surrogate pairs in JSON.
 * @type {(json: string) => string}
 */
export function wellFormedJson(json) {
  return json.replace(/\\\\|\\u[dD][89a-fA-F][0-9a-fA-F]{2}/g, (one) => (one === '\\\\' ? one : '\ufffd'));
}

/**
 * What each function wants of its arguments. Only the first three can be named.
 * @type {(name: string) => (string | null)[]}
 */
export function wantedBy(name) {
  /** @type {[names: string, wanted: (string | null)[]][]} */
  const table = [
    ['lower upper reverse trim trimLeft trimRight replaceOne replaceAll', ['a text']],
    ['base64Encode base64Decode md5 md5Hex sha1 sha1Hex sha256 sha256Hex', ['a text']],
    ['splitByString', ['a text', 'a text']],
    ['jsonParse', ['valid JSON']],
    ['decodeURLComponent', ['an encoded text']],
    ['encodeURLComponent', ['a text without half characters']],
    ['sha256HmacChain sha256HmacChainHex sha1HmacChain sha1HmacChainHex', ['a list of two or more texts']],
    ['addDays toStartOfDay toStartOfHour toStartOfWeek toStartOfMonth', ['a date or a time']],
    ['dateAdd', ['a text', null, 'a date or a time']],
    ['dateDiff extract', ['a text']],
    ['dateTrunc', ['a text', 'a time']],
    ['formatDateTime', ['a time', 'a text', 'a time zone']],
    ['toTimeZone', ['a time', 'a text']],
    ['fromUnixTimestamp fromUnixTimestampMilli', ['a number']],
    ['toDateTime toUnixTimestamp toUnixTimestampMilli', [null, 'a time zone']],
  ];
  return table.find(([names]) => names.split(' ').includes(name))?.[1] ?? [];
}
