// Bounds the tables of a statement. Postgres plans every place that reads a table by itself, and events are a table for each
// week: where it plans many of them, it takes much memory before it reads the first row. What it takes for a join grows with
// the square of the tables, because it compares each week of each table with those of all others.
import type { Span } from '../ast/index.ts';
import { SourceError } from '../errors.ts';
import type { QueryLimits } from './printer.ts';
import type { Table } from './schema.ts';
import type { Sql } from './sql.ts';

type Limits = Pick<QueryLimits, 'maxReads' | 'maxEventReads' | 'maxJoined' | 'maxJoinedEvents'>;

/** How many places read a table, and how many of events these need. */
export interface ReadCount {
  all: number;
  events: number;
}

export const NO_READS: ReadCount = { all: 0, events: 0 };

/** A subquery that is run by itself. */
export const ONE_READ: ReadCount = { all: 1, events: 0 };
/** A table in a join. */
export const readOf = ({ events }: Table): ReadCount => ({ all: 1, events: events === undefined ? 0 : 1 });

export const most = (one: ReadCount, other: ReadCount): ReadCount => ({
  all: Math.max(one.all, other.all),
  events: Math.max(one.events, other.events),
});

export const added = (one: ReadCount, other: ReadCount): ReadCount => ({
  all: one.all + other.all,
  events: one.events + other.events,
});

/** Counts the places of a statement that read a table. */
export class Reads {
  readonly #limits: Limits;
  /** Each table as it is printed, and how often it was. */
  readonly #printed = new Map<string, { events: number; times: number }>();
  #counted = NO_READS;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  get counted(): ReadCount {
    return this.#counted;
  }

  since(before: ReadCount): ReadCount {
    return {
      all: this.#counted.all - before.all,
      events: this.#counted.events - before.events,
    };
  }

  /** Notes a place that reads a table. `printed` is how it begins in the statement. */
  add({ events = 0 }: Table, printed: Sql, span: Span | undefined): void {
    const known = this.#printed.get(printed.text) ?? { events, times: 0 };
    this.#printed.set(printed.text, { events, times: known.times + 1 });
    this.repeat({ all: 1, events }, span);
  }

  /** Counts again what a column of a subquery reads, because Postgres may compute it in each place that names it. */
  repeat(tables: ReadCount, span: Span | undefined): void {
    this.#counted = added(this.#counted, tables);
    this.#check(this.#counted, span);
  }

  /** Checks the whole statement: some functions print an argument several times. */
  settle({ text }: Sql): void {
    const printed = { ...NO_READS };
    const noted = { ...NO_READS };
    for (const [table, { events, times }] of this.#printed) {
      const found = text.split(table).length - 1;
      printed.all += found;
      printed.events += found * events;
      noted.all += times;
      noted.events += times * events;
    }
    const { all, events } = this.#counted;
    this.#check({
      all: Math.ceil(all * Math.max(1, printed.all / Math.max(1, noted.all))),
      events: Math.ceil(events * Math.max(1, printed.events / Math.max(1, noted.events))),
    });
  }

  /** Checks the tables that are joined with each other. */
  checkJoin({ all, events }: ReadCount, span: Span | undefined): void {
    const { maxJoined, maxJoinedEvents } = this.#limits;
    if (events > maxJoinedEvents) {
      throw tooMany(
        `The query joins ${events} tables of events or sessions, of at most ${maxJoinedEvents}. Read them once and group them by what ` +
          'they are joined by, or join subqueries that group them.',
        span,
      );
    }
    if (all > maxJoined) {
      throw tooMany(
        `The query joins ${all} tables, of at most ${maxJoined}. Join fewer, or subqueries that group them.`,
        span,
      );
    }
  }

  #check({ all, events }: ReadCount, span?: Span): void {
    const { maxReads, maxEventReads } = this.#limits;
    if (events > maxEventReads) {
      throw tooMany(
        `The query reads events in ${events} places, of at most ${maxEventReads}; sessions count as four. A query in WITH, and a column ` +
          'of a subquery, counts wherever it is named. Read events once, with conditions in countIf, sumIf and the like.',
        span,
      );
    }
    if (all > maxReads) {
      throw tooMany(
        `The query reads tables in ${all} places, of at most ${maxReads}. Ask several queries.`,
        span,
      );
    }
  }
}

const tooMany = (reason: string, span: Span | undefined): SourceError =>
  new SourceError('too_large', reason, undefined, span ?? null);
