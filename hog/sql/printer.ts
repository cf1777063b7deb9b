// The state of printing one statement.
import type { Span } from '../ast/index.ts';
import { SourceError } from '../errors.ts';
import type { Visitor } from './dispatch.ts';
import type { Schema, Table } from './schema.ts';
import type { Scope } from './scope.ts';
import { numbered, Parameters, type Sql, sql } from './sql.ts';

export interface QueryLimits {
  /** Parts of the query, counted again wherever an alias repeats them. */
  maxNodes: number;
  maxDepth: number;
  /** Longest literal text. */
  maxTextLength: number;
  /** Rows of a query that sets no LIMIT; null: all of them. */
  defaultRows: number | null;
  /** Most rows that a LIMIT may ask for; null: any number. */
  maxRows: number | null;
}

/** What interactive queries get. Exports take `defaultRows` and `maxRows` of null. */
export const QUERY_LIMITS: QueryLimits = {
  maxNodes: 5_000,
  maxDepth: 100,
  maxTextLength: 100_000,
  defaultRows: 100,
  maxRows: 50_000,
};

export interface PrintOptions {
  schema: Schema;
  /** Every table is printed with the condition that its rows are this project's. */
  projectId: number;
  /** IANA name: where days begin, and what dates without an offset mean. */
  timezone: string;
  limits?: Partial<QueryLimits>;
  /** The text that the tree was read from: gives names to columns, and places to errors. */
  source?: string;
}

export class Printer {
  readonly options: PrintOptions;
  readonly visitor: Visitor;
  readonly limits: QueryLimits;
  readonly parameters = new Parameters();
  readonly timezone: Sql;
  /** Fields outside of aggregates, of the grouped query that is being printed; null if it has no groups. */
  ungrouped: { name: string; span: Span | undefined }[] | null = null;
  /** SQL of the expressions that the query is grouped by. */
  groups: ReadonlySet<string> = new Set();
  /** In the condition of a JOIN equality must stay one that can be hashed. */
  joining = false;
  /** Where no aggregate may stand, in words; null where one may. */
  aggregatesBarred: string | null = null;
  readonly #project: Sql;
  #nodes = 0;
  #depth = 0;
  #names = 0;

  constructor(options: PrintOptions, visitor: Visitor) {
    this.options = options;
    this.visitor = visitor;
    this.limits = { ...QUERY_LIMITS, ...options.limits };
    this.#project = this.parameters.add('bigint', String(options.projectId));
    this.timezone = this.parameters.add('text', options.timezone);
  }

  name(prefix: 't' | 'c' | 'v' | 'w'): Sql {
    return numbered(prefix, this.#names++);
  }

  /** A table, as far as it is the project's. The only way for a table into a statement. */
  guarded(table: Table): Sql {
    return sql`(select * from ${table.from} where ${table.project} = ${this.#project})`;
  }

  /** Rows of people's memberships in one cohort, of this project. */
  cohort(id: Sql): Sql {
    const { from, project, cohort, person } = this.options.schema.cohorts;
    return sql`(select ${person} from ${from} where ${project} = ${this.#project} and ${cohort} = ${id})`;
  }

  /** Counts a part of the query, and goes one level down for it. */
  enter<T>(span: Span | undefined, work: () => T): T {
    if (++this.#nodes > this.limits.maxNodes) {
      throw new SourceError(
        'too_large',
        `The query has more than ${this.limits.maxNodes} parts`,
        undefined,
        span ?? null,
      );
    }
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

  /** Aggregates and windows are refused in what `work` prints. */
  barAggregates<T>(where: string, work: () => T): T {
    const kept = this.aggregatesBarred;
    this.aggregatesBarred = where;
    try {
      return work();
    } finally {
      this.aggregatesBarred = kept;
    }
  }

  /** Outside of the groups' reach: inside of aggregates and subqueries every field is allowed. */
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

/** What printing an expression needs: the statement, and what names mean in this place. */
export interface Place {
  printer: Printer;
  scope: Scope;
}
