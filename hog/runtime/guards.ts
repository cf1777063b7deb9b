// Checks before calls of library functions: arguments whose result would be too large, or take too long.
import { runtimeFailure } from './errors.ts';
import type { Meter } from './meter.ts';
import { checkSearch } from './operators.ts';
import { costOf, type HogValue } from './values.ts';

const text = (value: HogValue): string => (typeof value === 'string' ? value : '');

function count(whole: string, part: string, most: number): number {
  checkSearch(whole, part);
  if (part === '') return whole.length + 1;
  let found = 0;
  for (let at = whole.indexOf(part); at !== -1 && found < most; at = whole.indexOf(part, at + part.length)) {
    found++;
  }
  return found;
}

/** Checks the arguments of a function and refuses a result that would be too large, before it is computed. */
type Guard = (args: HogValue[], meter: Meter) => void;

const replacing =
  (most: number): Guard =>
  ([whole, part, by], meter) => {
    if (typeof whole !== 'string') return;
    const found = count(whole, String(part), most);
    // Patterns such as `$&` insert parts of the text into the replacement.
    const inserts = String(by).split('$').length - 1;
    meter.allocate(whole.length + found * (String(by).length + inserts * whole.length));
  };

const searching: Guard = ([whole, part]) => checkSearch(text(whole), String(part));

/** The longest date format. The date package of the reference VM is slow with long formats. */
const MAX_FORMAT = 10_000;

/** The checks of each function, by its name. */
export const guards: ReadonlyMap<string, Guard> = new Map<string, Guard>(
  Object.entries<Guard>({
    range: (args, meter) => {
      const length = args.length === 1 ? Number(args[0]) : Number(args[1]) - Number(args[0]);
      if (length > 0) meter.allocate(length * 8);
    },
    replaceAll: replacing(Number.POSITIVE_INFINITY),
    replaceOne: replacing(1),
    splitByString: ([separator, whole], meter) => {
      if (typeof whole === 'string') {
        meter.allocate(count(whole, String(separator), Number.POSITIVE_INFINITY) * 8 + whole.length);
      }
    },
    arrayStringConcat: ([list, separator = ''], meter) => {
      if (Array.isArray(list)) meter.allocate(costOf(list, meter) + list.length * String(separator).length);
    },
    arraySort: ([list], meter) => meter.step(costOf(list, meter) >> 3),
    arrayReverseSort: ([list], meter) => meter.step(costOf(list, meter) >> 3),
    reverse: ([whole], meter) => meter.allocate(text(whole).length * 2),
    concat: (args, meter) => meter.allocate(args.reduce<number>((sum, one) => sum + costOf(one, meter), 0)),
    jsonStringify: ([value, indent], meter) => {
      const cost = costOf(value, meter);
      const depth = typeof indent === 'number' && indent > 0 ? depthOf(value) * Math.min(indent, 10) : 1;
      meter.allocate(cost * Math.max(1, depth / 4));
    },
    formatDateTime: ([, format]) => {
      if (text(format).length > MAX_FORMAT) {
        throw runtimeFailure(`The format is longer than ${MAX_FORMAT} characters`);
      }
    },
    position: searching,
    positionCaseInsensitive: searching,
    multiSearchAnyCaseInsensitive: ([whole, parts]) => {
      if (Array.isArray(parts)) for (const part of parts) checkSearch(String(whole), String(part));
    },
  }),
);

function depthOf(value: HogValue): number {
  let depth = 0;
  for (
    let level: HogValue[] = [value];
    level.length > 0 && depth < 500;
    level = level.flatMap((one) =>
      one instanceof Map ? [...one.values()] : Array.isArray(one) ? one.slice(0, 1_000) : [],
    )
  ) {
    depth++;
    if (level.length > 100_000) return 500;
  }
  return depth;
}
