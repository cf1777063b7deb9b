// The state of printing one statement.
import { databaseZone } from '../../values/zones.ts';
import type { Span } from '../ast/index.ts';
import { SourceError } from '../errors.ts';
import { PatternBudget } from '../patterns/index.ts';
import type { Visitor } from './dispatch.ts';
import { Reads } from './reads.ts';
import type { Schema, Table } from './schema.ts';
import type { Scope } from './scope.ts';
import { type Built, Sizes } from './sizes.ts';
import { NOTHING, numbered, Parameters, type Sql, sql } from './sql.ts';
import type { TimeBounds } from './time-bounds.ts';

export interface QueryLimits {
  /** The most nodes of a query. A repeated alias counts its expression again. */
  maxNodes: number;
  maxDepth: number;
  /** The longest text literal, in characters. */
  maxTextLength: number;
  /** The most places that read events. Sessions are computed from events, in several such places. */
  maxEventReads: number;
  /** The most places that read a table. */
  maxReads: number;
  /** The most tables of events that are joined with each other. */
  maxJoinedEvents: number;
  /** The most tables that are joined with each other. */
  maxJoined: number;
  /** The number of rows if the query has no LIMIT. Null means all rows. */
  defaultRows: number | null;
  /** The highest LIMIT. Null means any. */
  maxRows: number | null;
}

/** The limits of interactive queries. Exports set `defaultRows` and `maxRows` to null. */
export const QUERY_LIMITS: QueryLimits = {
  maxNodes: 5_000,
  maxDepth: 100,
  maxTextLength: 100_000,
  maxEventReads: 40,
  maxReads: 500,
  maxJoinedEvents: 10,
  maxJoined: 50,
  defaultRows: 100,
  maxRows: 50_000,
};

export interface PrintOptions {
  schema: Schema;
  /** Every table is printed with a condition that restricts it to this project. */
  projectId: number;
  /** The IANA name of the time zone in which days begin and dates without an offset are read. */
  timezone: string;
  limits?: Partial<QueryLimits>;
  /**
   * Says when rows with times between these bounds can have been stored. Undefined: at any time. Tables that are stored by time
   * then leave out the rest.
   */
  storedRanges?: (bounds: TimeBounds) => readonly StoredRange[] | undefined;
  /** The present, in milliseconds since 1970, for estimates of times. */
  now?: number;
  /** The source text of the tree. It gives names to columns and places to errors. */
  source?: string;
}

/** Instants in milliseconds since 1970. Null: there is no bound. The end does not belong to the range. */
export interface StoredRange {
  from: number | null;
  to: number | null;
}

export class Printer {
  readonly options: PrintOptions;
  readonly visitor: Visitor;
  readonly limits: QueryLimits;
  readonly parameters = new Parameters();
  readonly patterns = new PatternBudget();
  readonly sizes = new Sizes(this.parameters);
  readonly reads: Reads;
  readonly timezone: Sql;
  /** The fields outside of aggregates in the current grouped query. Null if the query has no groups. */
  ungrouped: { name: string; span: Span | undefined }[] | null = null;
  /** The SQL of the expressions in GROUP BY. */
  groups: ReadonlySet<string> = new Set();
  /**
   * True inside the condition of a JOIN. There, equality must be printed as `=`, so that Postgres can use a hash join.
   */
  joining = false;
  /** The clause in which aggregates are refused, for the message. Null where they are allowed. */
  aggregatesBarred: string | null = null;
  readonly #project: Sql;
  #nodes = 0;
  #depth = 0;
  #names = 0;
  readonly #rows = new WeakMap<object, Sql[]>();

  constructor(options: PrintOptions, visitor: Visitor) {
    this.options = options;
    this.visitor = visitor;
    this.limits = { ...QUERY_LIMITS, ...options.limits };
    this.reads = new Reads(this.limits);
    this.#project = this.parameters.add('bigint', String(options.projectId));
    this.timezone = this.parameters.add('text', databaseZone(options.timezone));
  }

  name(prefix: 't' | 'c' | 'v' | 'w'): Sql {
    return numbered(prefix, this.#names++);
  }

  /**
   * Names rows that a part of the tree goes through. They have the same name wherever the part is printed, so that it groups by
   * itself: what is named outside of a part never has a name of its inside. `which` tells several names of a part from each other.
   */
  rowsOf(node: object, which = 0): Sql {
    const names = this.#rows.get(node) ?? [];
    this.#rows.set(node, names);
    names[which] ??= this.name('v');
    return names[which];
  }

  /** Prints a table restricted to the project. There is no other way to print a table. */
  guarded(table: Table, span: Span | undefined, stored: Sql = NOTHING): Sql {
    const from = typeof table.from === 'function' ? table.from(this.#project, this.parameters) : table.from;
    const rows = sql`(select * from ${from} where ${table.project} = ${this.#project}`;
    this.reads.add(table, rows, span);
    return sql`${rows}${stored})`;
  }

  /**
   * Prints whether a person is in a cohort of this project. Undefined: there are no cohorts here. Postgres looks each
   * person up by itself, or hashes the members if there are many persons and room for all members. With `in (select …)`
   * it would compare each person with all members where there is no room.
   */
  inCohort(personId: Sql, id: Sql): Sql | undefined {
    const { cohorts } = this.options.schema;
    if (!cohorts) return undefined;
    const { from, project, cohort, person } = cohorts;
    const t = this.name('t');
    return sql`exists (select from ${from} as ${t} where ${t}.${project} = ${this.#project} and ${t}.${cohort} = ${id}
      and ${t}.${person} = ${personId})`;
  }

  /** Runs `work`, and returns with its result what it printed. */
  measured<T>(work: () => T): T & { built: Built } {
    const [parts, values, reads] = [this.#nodes, this.sizes.total, this.sizes.reads];
    const tables = this.reads.counted;
    const made = work();
    const built = {
      parts: this.#nodes - parts,
      values: this.sizes.total - values,
      reads: this.sizes.reads - reads,
      tables: this.reads.since(tables),
    };
    return { ...made, built };
  }

  /**
   * Counts a column of a subquery again where it is named. Postgres may put its expression there, so columns that name
   * each other twice would otherwise double the statement at each level.
   */
  repeat({ parts, tables, ...built }: Built, span?: Span): void {
    this.sizes.repeat(built);
    this.reads.repeat(tables, span);
    this.#spend(parts, span);
  }

  #spend(parts: number, span: Span | undefined): void {
    this.#nodes += parts;
    if (this.#nodes > this.limits.maxNodes) {
      throw new SourceError(
        'too_large',
        `The query has more than ${this.limits.maxNodes} parts`,
        undefined,
        span ?? null,
      );
    }
  }

  /** Runs `work` for a nested part of the query, and enforces the limits of nodes and depth. */
  enter<T>(span: Span | undefined, work: () => T): T {
    this.#spend(1, span);
    if (++this.#depth > this.limits.maxDepth) {
      throw new SourceError(
        'too_deep',
        `The query is nested more than ${this.limits.maxDepth} deep`,
        undefined,
        span ?? null,
      );
    }
    try {
      return work();
    } finally {
      this.#depth--;
    }
  }

  /** Runs `work` and refuses aggregates and window functions in it. */
  barAggregates<T>(where: string, work: () => T): T {
    const kept = this.aggregatesBarred;
    this.aggregatesBarred = where;
    try {
      return work();
    } finally {
      this.aggregatesBarred = kept;
    }
  }

  /** Runs `work` and allows every field in it, as in aggregates and subqueries. */
  ungroupedAllowed<T>(work: () => T): T {
    const kept = this.ungrouped;
    this.ungrouped = null;
    try {
      return work();
    } finally {
      this.ungrouped = kept;
    }
  }
}

/** What an expression needs to be printed: the statement's printer and the scope of its names. */
export interface Place {
  printer: Printer;
  scope: Scope;
}
