/**
 * The timestamp of the event with the project $1 and the uuid $2, or null. An id is in the table or sealed: one statement sees it
 * in one of the two, whatever is moved meanwhile.
 */
export const EVENT_TIME = `coalesce(
  (select timestamp from event_ids where project_id = $1::int and uuid = $2::uuid),
  (select stored from sealed_event_ids(array[$1::int], array[$2::uuid])))`;
