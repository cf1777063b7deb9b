// Bounds the memory of a statement. Postgres limits neither the size of a value nor the memory of values, so every
// function whose result can be much larger than its arguments takes the most bytes that its result may have.
import { fault } from './errors.ts';
import type { ReadCount } from './reads.ts';
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
  /** All documents, and values of documents, that the statement reads for one row: each place that reads one counts. */
  documents: 384 * MEBIBYTE,
  /** So few places read documents of any size, as those of all columns of an export do. */
  fewReads: 8,
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
  /** How many values of documents. */
  reads: number;
  /** How many places read a table. */
  tables: ReadCount;
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
  readonly #document: LateParameter;
  #innerReads = 0;
  #totalReads = 0;
  /** The value of the last part. An alias gives it on as it is. */
  #last: Value | undefined;

  constructor(parameters: Parameters) {
    this.#limit = parameters.later('bigint');
    this.#document = parameters.later('bigint');
  }

  get reads(): number {
    return this.#totalReads;
  }

  /** The most bytes that a place may read of a document, as an argument of a function. */
  document(): Sql {
    return this.#document.sql;
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
  repeat({ values, reads }: Pick<Built, 'values' | 'reads'>): void {
    this.#total += values;
    this.#totalReads += reads;
  }

  /** Prints a part, and notes how much it builds. */
  part(print: () => Value): Value {
    const [outer, outerReads] = [this.#inner, this.#innerReads];
    this.#inner = 0;
    this.#innerReads = 0;
    const value = print();
    const large = isLarge(value.type);
    const built = large ? (value.built ?? this.#inner) : 0;
    // What is bounded by itself has nothing of a document in it any more.
    const read = large && value.built === undefined ? Math.max(value.read ?? 0, this.#innerReads) : 0;
    this.#total += built;
    if (value !== this.#last) this.#totalReads += read;
    this.#inner = outer + built;
    this.#innerReads = outerReads + read;
    const isMeasured = built === (value.built ?? 0) && read === (value.read ?? 0);
    this.#last = isMeasured ? value : { ...value, built, read };
    return this.#last;
  }

  /** Prints a query. What sorts or joins keeps several rows. */
  rows<T>(several: boolean, sent: boolean, print: () => T): T {
    const [outer, outerReads] = [this.#inner, this.#innerReads];
    this.#inner = 0;
    this.#innerReads = 0;
    const made = print();
    this.#total += this.#inner * ((several ? SORTED_ROWS - 1 : 0) + (sent ? SENT : 0));
    this.#totalReads += this.#innerReads * (several ? SORTED_ROWS - 1 : 0);
    this.#inner += outer;
    this.#innerReads += outerReads;
    return made;
  }

  /** Decides how large a value may be, when the whole statement is printed. */
  settle(statement: Sql): void {
    this.#settleDocuments();
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

  /** Decides how much of a document each place may read. */
  #settleDocuments(): void {
    const reads = this.#totalReads;
    const most =
      reads <= SIZE_LIMITS.fewReads ? SIZE_LIMITS.documents : Math.floor(SIZE_LIMITS.documents / reads);
    if (most < SIZE_LIMITS.least) {
      throw fault(
        `The query reads documents in too many places: ${reads}, of at most ${Math.floor(SIZE_LIMITS.documents / SIZE_LIMITS.least)}`,
      );
    }
    this.#document.settle(String(most));
  }
}
