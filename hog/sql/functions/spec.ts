// How a function is declared: what it takes, what it gives, and its SQL.
import type { Call, Span } from '../../ast/index.ts';
import { coerced, type Target } from '../coerce.ts';
import { fault } from '../errors.ts';
import type { Place } from '../printer.ts';
import type { Sql } from '../sql.ts';
import type { Type, Value } from '../types.ts';

export interface FunctionCall {
  place: Place;
  node: Call;
  args: Value[];
  span: Span | undefined;
}

export interface FunctionSpec {
  min: number;
  max: number;
  /** Takes its arguments unprinted: lambdas, conditions, units. */
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
 * `of('s i?', 'string', (a, b) => …)`: one letter for each argument, `?` for those that may be left out (they
 * are then undefined), `*` after the last letter for any number of them.
 */
export function of(
  letters: string,
  type: Type | ((args: Value[]) => Type),
  make: (...args: Sql[]) => Sql,
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
        sql: make(...pieces),
        type: typeof type === 'function' ? type(args) : type,
        ...(certain && { certain }),
      };
    },
  };
}

/** Functions that give no NULL for arguments that are none; conversions may. */
const CERTAIN: ReadonlySet<string> = new Set();

export const MANY = 1_000;

/** A function that looks at its arguments' types or literals. */
export const custom = (min: number, max: number, print: (call: FunctionCall) => Value): FunctionSpec => ({
  min,
  max,
  print,
});

/** A function that prints its arguments itself. */
export const lazy = (min: number, max: number, print: (place: Place, node: Call) => Value): FunctionSpec => ({
  min,
  max,
  lazy: print,
});

export function literalText(value: Value | undefined, what: string, span?: Span): string {
  if (typeof value?.literal !== 'string') throw fault(`${what} must be written down as a text`, span);
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
