import type { Column } from '../../formats/columns.ts';
import { build, type Expr } from '../../hog/ast/index.ts';
import type { ColumnSet, ModelColumn } from '../model.ts';

const column = (
  name: string,
  type: Column['type'],
  { nullable = false, expr = build.field(name) }: { nullable?: boolean; expr?: Expr } = {},
): ModelColumn => ({ name, type, nullable, expr });

const UUID = column('uuid', 'uuid');
const EVENT = column('event', 'string');
const DISTINCT_ID = column('distinct_id', 'string');
const TIMESTAMP = column('timestamp', 'timestamp');
const PROPERTIES = column('properties', 'json');
const PERSON_PROPERTIES = column('person_properties', 'json');
const ELEMENTS_CHAIN = column('elements_chain', 'string');

/** The default columns of an event for each kind of destinations. */
export const EVENT_COLUMNS: Readonly<Record<ColumnSet, readonly ModelColumn[]>> = {
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
  // The columns of the table that PostHog's exports create, in their order.
  tables: [
    UUID,
    EVENT,
    PROPERTIES,
    // This column has always contained the chain as a JSON string.
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
  capture: [UUID, EVENT, DISTINCT_ID, TIMESTAMP, PROPERTIES, ELEMENTS_CHAIN],
};
