import type { Column } from '../formats/columns.ts';
import { build, type Expr } from '../hog/ast/index.ts';
import type { ColumnSet } from './model-query.ts';

export interface EventColumn extends Column {
  expr: Expr;
}

const column = (
  name: string,
  type: Column['type'],
  { nullable = false, expr = build.field(name) }: { nullable?: boolean; expr?: Expr } = {},
): EventColumn => ({ name, type, nullable, expr });

const UUID = column('uuid', 'uuid');
const EVENT = column('event', 'string');
const DISTINCT_ID = column('distinct_id', 'string');
const TIMESTAMP = column('timestamp', 'timestamp');
const PROPERTIES = column('properties', 'json');
const PERSON_PROPERTIES = column('person_properties', 'json');
const ELEMENTS_CHAIN = column('elements_chain', 'string');

/** What of an event goes to a destination that was not told otherwise. */
export const EVENT_COLUMNS: Readonly<Record<ColumnSet, readonly EventColumn[]>> = {
  files: [
    UUID,
    EVENT,
    DISTINCT_ID,
    TIMESTAMP,
    column('created_at', 'timestamp'),
    column('_inserted_at', 'timestamp'),
    PROPERTIES,
    column('person_id', 'uuid'),
    PERSON_PROPERTIES,
    ELEMENTS_CHAIN,
  ],
  // The table that PostHog's exports make, in its order.
  postgres: [
    UUID,
    EVENT,
    PROPERTIES,
    // A text in JSON, as the table's column has always held it.
    column('elements', 'json', { expr: build.call('toJSONString', build.field('elements_chain')) }),
    column('set', 'json', { nullable: true }),
    column('set_once', 'json', { nullable: true }),
    DISTINCT_ID,
    column('team_id', 'int32'),
    column('ip', 'string', {
      nullable: true,
      expr: build.call('nullIf', build.field('ip'), build.constant('')),
    }),
    column('site_url', 'string', { nullable: true, expr: build.constant(null) }),
    TIMESTAMP,
    PERSON_PROPERTIES,
  ],
  http: [UUID, EVENT, DISTINCT_ID, TIMESTAMP, PROPERTIES, ELEMENTS_CHAIN],
};
