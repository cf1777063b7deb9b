import type { CapturedEvent } from '../captured-event.ts';
import { CHANGING_PROPERTIES } from './update.ts';

/** The properties of an event that say who did it, with which groups, and what that changes. */
const READ: ReadonlySet<string> = new Set([
  ...CHANGING_PROPERTIES,
  ...['$process_person_profile', '$anon_distinct_id', 'alias'],
  ...['$groups', '$group_type', '$group_key', '$group_set'],
]);

/** The properties of an event that persons and groups are derived from, in their order. */
export function personPropertiesOf({
  properties,
}: Pick<CapturedEvent, 'properties'>): Record<string, unknown> {
  const read: Record<string, unknown> = {};
  for (const name in properties) if (READ.has(name)) read[name] = properties[name];
  return read;
}
