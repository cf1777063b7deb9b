// Bounds the memory of a statement. Postgres limits neither the size of a value nor the memory of values, so every
// function whose result can be much larger than its arguments takes the most bytes that its result may have.
import { fault } from './errors.ts';
import type { LateParameter, Parameters, Sql } from './sql.ts';
import { isArray, isTuple, type Type, type Value } from './types.ts';

const MEBIBYTE = 1024 * 1024;

/** The limits of what one statement builds, in bytes. */
export const SIZE_LIMITS = {
  /** All values that the statement has in memory at the same time. */
  statement: 128 * MEBIBYTE,
  /** One value. It is less if the query has many parts that build large values. */
  value: 16 * MEBIBYTE,
  /** If a value could have only less than this, the query is refused. */
  least: 4 * 1024,
} as const;

/** Sorting and joining keep this many rows in memory, whatever their size. */
const SORTED_ROWS = 16;
/** Sending a row takes its text, and a message that doubles as it grows. */
const SENT = 3;

const isLarge = (type: Type): boolean =>
  isArray(type) || isTuple(type) || type === 'string' || type === 'json';

/** What was built while a part of the query was printed. */
export interface Built {
  /** How many values of the largest size. */
  values: number;
  parts: number;
}

/**
 * Counts how many values of the largest size a statement can have in memory at the same time. A bounded function builds
 * one. Every other part builds at most as much as its own parts together.
 */
export class Sizes {
  readonly #limit: LateParameter;
  #inner = 0;
  #total = 0;
  #bounded = 0;

  constructor(parameters: Parameters) {
    this.#limit = parameters.later('bigint');
  }

  get total(): number {
    return this.#total;
  }

  /** The most bytes that a value may have, as an argument of a bounded function. */
  most(): Sql {
    this.#bounded += 1;
    return this.#limit.sql;
  }

  /** Counts again what a column built, because Postgres may compute it in each place that names it. */
  repeat(values: number): void {
    this.#total += values;
  }

  /** Prints a part, and notes how much it builds. */
  part(print: () => Value): Value {
    const outer = this.#inner;
    this.#inner = 0;
    const value = print();
    const built = isLarge(value.type) ? (value.built ?? this.#inner) : 0;
    this.#total += built;
    this.#inner = outer + built;
    return built === (value.built ?? 0) ? value : { ...value, built };
  }

  /** Prints a query. What sorts or joins keeps several rows. */
  rows<T>(several: boolean, sent: boolean, print: () => T): T {
    const outer = this.#inner;
    this.#inner = 0;
    const made = print();
    this.#total += this.#inner * ((several ? SORTED_ROWS - 1 : 0) + (sent ? SENT : 0));
    this.#inner += outer;
    return made;
  }

  /** Decides how large a value may be, when the whole statement is printed. */
  settle(statement: Sql): void {
    if (this.#bounded === 0) return;
    // Some functions print an argument several times.
    const printed = statement.text.split(this.#limit.sql.text).length - 1;
    const times = Math.max(1, printed / this.#bounded);
    const values = Math.ceil(Math.max(this.#total, this.#bounded) * times);
    const most = Math.min(SIZE_LIMITS.value, Math.floor(SIZE_LIMITS.statement / values));
    if (most < SIZE_LIMITS.least) {
      throw fault(
        `The query builds too many large values: ${values} at the same time, of at most ${Math.floor(SIZE_LIMITS.statement / SIZE_LIMITS.least)}`,
      );
    }
    this.#limit.settle(String(most));
  }
}
