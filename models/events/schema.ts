import { createSchema, type Schema } from '../../hog/sql/index.ts';

/** The fields that filters and selected columns may name: those that are stored with the event. */
const READABLE = [
  ...['uuid', 'event', 'distinct_id', 'team_id', 'timestamp', 'created_at', 'inserted_at', '_inserted_at'],
  ...[
    'properties',
    'set',
    'set_once',
    'ip',
    'elements_chain',
    'person_id',
    'person_mode',
    'person_properties',
  ],
  ...['$session_id', '$window_id', '$group_0', '$group_1', '$group_2', '$group_3', '$group_4'],
];

/**
 * The schema of events alone, with the person as of the time when the event came in. It joins nothing, so rows keep
 * their order. Members of cohorts are those of the time of the query.
 */
export const EVENT_SCHEMA: Schema = eventSchema();

function eventSchema(): Schema {
  const { tables, cohorts } = createSchema('on event');
  const { events } = tables;
  const { poe } = events?.fields ?? {};
  if (!events || !poe || !cohorts) throw new Error('the schema has no events or no cohorts');
  const fields = Object.fromEntries(
    READABLE.map((name) => {
      const field = events.fields[name];
      if (!field) throw new Error(`the schema's events have no ${name}`);
      return [name, field];
    }),
  );
  return { tables: { events: { ...events, fields: { ...fields, person: poe, poe } } }, cohorts };
}
