import { timestamptzText } from '../../db/timestamptz.ts';
import { build, type Expr } from '../../hog/ast/index.ts';
import type { OpenInterval } from '../../intervals/index.ts';
import type { FirstData, Model } from '../model.ts';
import { EVENT_COLUMNS } from './columns.ts';
import { EVENT_SCHEMA } from './schema.ts';

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

/** When the first event was stored. It is also when the first row of a model that is computed from events came to be. */
export const FIRST_EVENT: FirstData = {
  sql: 'select min(inserted_at) as first from events where project_id = $1 and inserted_at >= $2 and inserted_at < $3',
  isByWeek: true,
};

/** The events that were stored within an interval, whenever they happened. */
export const events = {
  name: 'events',
  row: 'event',
  columns: EVENT_COLUMNS,
  storedTexts: ['properties', 'person_properties', 'set', 'set_once'],
  source: (interval) => ({ schema: EVENT_SCHEMA, where: bounds(interval), settings: IN_ORDER }),
  isOfEvents: true,
  changes: false,
  expires: true,
  firstData: FIRST_EVENT,
  table: {
    keys: [['team_id', 'uuid'], ['uuid']],
    newer: null,
    shortTexts: ['uuid', 'event', 'distinct_id', 'ip', 'site_url'],
  },
  docs: {
    rows: 'events with `inserted_at` in the interval, whenever they happened',
    order: 'as they were stored, see below',
    insertedAt: 'the time of ingestion from the horizon',
    fields:
      '`uuid`, `event`, `distinct_id`, `team_id`, `timestamp`, `created_at`, `_inserted_at`, `properties`, `set`, `set_once`, `ip`, `elements_chain`, `person_id`, `person_mode`, `person_properties`, `person.properties`, `$session_id`, `$window_id`, `$group_0` to `$group_4`',
  },
} as const satisfies Model;
