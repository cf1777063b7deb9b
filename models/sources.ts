import { timestamptzText } from '../db/timestamptz.ts';
import { build, type Expr } from '../hog/ast/index.ts';
import { changedPersonsSchema, changedSessionsSchema, type Schema } from '../hog/sql/index.ts';
import type { OpenInterval } from '../intervals/index.ts';
import { EVENT_SCHEMA } from './event-schema.ts';
import type { Model } from './model-query.ts';

/** The rows of an interval of a model, as HogQL sees them: the table that has the model's name. */
export interface ModelSource {
  schema: Schema;
  /** The conditions for the interval, if the table has other rows too. */
  where: Expr[];
  /** The settings of Postgres with which the rows are read. */
  settings: Readonly<Record<string, string>>;
}

/**
 * Events come in the order in which they were stored: partition by partition, block by block, read by one process from
 * the beginning. These settings leave the planner only scans that keep this order, and each of them gives the same
 * rows. So two reads of an interval give the same rows in the same order, unless a partition is rewritten in between
 * (`vacuum full`, a restore, rows moved out of the default partition).
 */
const IN_ORDER = {
  enable_indexscan: 'off',
  enable_indexonlyscan: 'off',
  max_parallel_workers_per_gather: '0',
  synchronize_seqscans: 'off',
};

/** Returns the rows of a model for an interval. Those of persons and sessions have no particular order. */
export function sourceOf(model: Model, interval: OpenInterval): ModelSource {
  if (model === 'events') return { schema: EVENT_SCHEMA, where: bounds(interval), settings: IN_ORDER };
  const changes = {
    start: interval.start === null ? null : timestamptzText(interval.start),
    end: timestamptzText(interval.end),
  };
  const schema = model === 'persons' ? changedPersonsSchema(changes) : changedSessionsSchema(changes);
  return { schema, where: [], settings: {} };
}

/**
 * Builds the conditions for the interval. The table stands before the field, so that no alias of a selected column can
 * replace it.
 */
function bounds({ start, end }: OpenInterval): Expr[] {
  const insertedAt = build.field('events', 'inserted_at');
  const at = (instant: number) => build.constant(timestamptzText(instant));
  return [
    ...(start === null ? [] : [build.compare('>=', insertedAt, at(start))]),
    build.compare('<', insertedAt, at(end)),
  ];
}
