/** Large documents are passed over where somebody waits for a hint. */
const DOCUMENT_BYTES = 1024 * 1024;
/** So many events are looked at. */
const MOST_EVENTS = 100_000;

/** The newest events of a project, from a time on. Both are expressions in SQL. */
export const newestEvents = (project: string, since: string): string => `
  (select event, distinct_id, person_id, session_id, window_id, properties from events
   where project_id = ${project} and timestamp >= ${since} and timestamp <= now() + interval '5 seconds'
   order by timestamp desc, uuid desc limit ${MOST_EVENTS}) as newest`;

/** The condition for events whose properties are read. */
export const IS_SMALL = `octet_length(properties::text) <= ${DOCUMENT_BYTES}`;
