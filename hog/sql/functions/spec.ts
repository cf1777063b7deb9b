// The declaration of a function: its arguments, its result type and its SQL.
import type { Call, Span } from '../../ast/index.ts';
import { coerced, type Target } from '../coerce.ts';
import { fault } from '../errors.ts';
import type { Place } from '../printer.ts';
import { digits, NOTHING, type Sql, sql } from '../sql.ts';
import { type DateTime, isArray, isTuple, type Type, type Value } from '../types.ts';
import { zoneArgument } from '../zones.ts';

export interface FunctionCall {
  place: Place;
  node: Call;
  args: Value[];
  span: Span | undefined;
}

export interface FunctionSpec {
  min: number;
  max: number;
  /** Prints the call from the syntax tree, for functions with lambdas, conditions or units as arguments. */
  lazy?: (place: Place, node: Call) => Value;
  print?: (call: FunctionCall) => Value;
}

export type FunctionTable = Readonly<Record<string, FunctionSpec>>;

const LETTERS: Readonly<Record<string, Target | 'any'>> = {
  s: 'string',
  n: 'number',
  i: 'int',
  f: 'float',
  b: 'bool',
  t: 'datetime',
  d: 'date',
  u: 'uuid',
  j: 'json',
  x: 'any',
};

/**
 * Declares a function by the types of its arguments, as in `of('s i?', 'string', (a, b) => …)`. Each letter is the type
 * of an argument. `?` marks an optional argument, which is undefined if it is left out. `*` after the last letter
 * allows any number of them.
 */
export function of(
  letters: string,
  type: Type | ((args: Value[]) => Type),
  make: (...args: Sql[]) => Sql,
): FunctionSpec {
  return declared(letters, type, (_place, args) => make(...args));
}

function declared(
  letters: string,
  type: Type | ((args: Value[]) => Type),
  make: (place: Place, args: Sql[]) => Sql,
): FunctionSpec {
  const words = letters === '' ? [] : letters.split(' ');
  const many = words.at(-1)?.endsWith('*') ?? false;
  const targets = words.map((word) => LETTERS[word[0] as string] as Target | 'any');
  return {
    min: words.filter((word) => !/[?*]/.test(word)).length,
    max: many ? MANY : words.length,
    print: ({ place, args, span }) => {
      const pieces = args.map((value, index) => {
        const target = targets[Math.min(index, targets.length - 1)] as Target | 'any';
        return target === 'any' ? value.sql : coerced(place, value, target, span);
      });
      const certain = CERTAIN.has(type as string) && args.every((one) => one.certain);
      return {
        sql: make(place, pieces),
        type: typeof type === 'function' ? type(args) : type,
        ...(certain && { certain }),
      };
    },
  };
}

/** Result types of functions that never return NULL for arguments that are not NULL. Conversions can return NULL. */
const CERTAIN: ReadonlySet<string> = new Set();

export const MANY = 1_000;

/**
 * Declares a function like `of`, whose result can be much larger than its arguments. `make` also gets the most bytes of
 * the result, and passes them to a function of the schema `hq` that refuses to build more.
 */
export function bounds(letters: string, type: Type, make: (most: Sql, ...args: Sql[]) => Sql): FunctionSpec {
  const spec = declared(letters, type, (place, args) => make(place.printer.sizes.most(), ...args));
  return { ...spec, print: (call) => ({ ...spec.print!(call), built: 1 }) };
}

/** Prints a text that may only be so long that what is made of it, with at most `factor` times its bytes, is allowed. */
export const within = (most: Sql, text: Sql, factor: number): Sql =>
  sql`hq.within(${text}, ${digits(factor)}, ${most})`;

/**
 * Prints an aggregate that keeps all values of a group. Another aggregate counts their sizes, row by row and before this
 * one keeps the row, and refuses too much.
 */
export function bounded(
  place: Place,
  value: Value,
  aggregate: Sql,
  { distinct = NOTHING, filter = NOTHING, most = place.printer.sizes.most() } = {},
): Sql {
  const total =
    value.type === 'string'
      ? sql`hq.total_of_texts(${distinct}${value.sql}, ${most})`
      : value.type === 'json' || isArray(value.type) || isTuple(value.type)
        ? sql`hq.total_of_documents(${distinct}(${value.sql})::jsonb, ${most})`
        : sql`hq.total_of_values(${distinct}${value.sql}, ${most})`;
  // The total comes first, because Postgres finishes aggregates that sort in the order in which they are printed.
  return sql`case when ${total}${filter} is not null then ${aggregate} end`;
}

/** Declares a function whose SQL depends on the types or literals of its arguments. */
export const custom = (min: number, max: number, print: (call: FunctionCall) => Value): FunctionSpec => ({
  min,
  max,
  print,
});

/** Declares a function that prints its arguments itself. */
export const lazy = (min: number, max: number, print: (place: Place, node: Call) => Value): FunctionSpec => ({
  min,
  max,
  lazy: print,
});

/** Returns the type of times in the zone that an argument of a call names, or undefined if it is left out. */
export const zoneAt = ({ place, node, args, span }: FunctionCall, index: number): DateTime | undefined =>
  zoneArgument(place.printer, args[index], node.args[index], span);

export function literalText(value: Value | undefined, what: string, span?: Span): string {
  if (typeof value?.literal !== 'string') throw fault(`${what} must be a text literal`, span);
  return value.literal;
}

export function literalCount(
  value: Value | undefined,
  what: string,
  min: number,
  max: number,
  span?: Span,
): number {
  const number = value?.literal;
  if (typeof number !== 'number' || !Number.isInteger(number) || number < min || number > max) {
    throw fault(`${what} must be a whole number from ${min} to ${max}`, span);
  }
  return number;
}
