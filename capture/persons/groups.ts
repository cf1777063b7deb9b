import { isObject } from '../../values/json-object.ts';
import { type CapturedEvent, storableTime } from '../captured-event.ts';
import type { PersonNotice } from './notice.ts';

type Properties = Record<string, unknown>;
type Notify = (notice: PersonNotice) => void;

/** How many characters the type of a group, and its key, may have. */
export const LONGEST_GROUP_NAME = 400;
export const MOST_GROUP_PROPERTIES = 512 * 1024;

/** A group that an event belongs to. */
export interface Membership {
  type: string;
  key: string;
}

/** What a `$groupidentify` changes in its group. */
export interface GroupUpdate extends Membership {
  set: Readonly<Properties>;
  /** When the event happened, in milliseconds. */
  at: number;
}

/** Some guides use the second spelling. */
export const GROUP_IDENTIFY: ReadonlySet<string> = new Set(['$groupidentify', '$group_identify']);

/** The value as a type or a key. Undefined if it is missing or empty. */
function asKey(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.trim() === '' ? undefined : text;
}

/** Counts characters, not units of UTF-16. */
function isTooLong(text: string): boolean {
  return text.length > LONGEST_GROUP_NAME && Array.from(text).length > LONGEST_GROUP_NAME;
}

function fits(membership: Membership, event: string, notice: Notify): boolean {
  for (const part of ['type', 'key'] as const) {
    if (!isTooLong(membership[part])) continue;
    const value = membership[part].slice(0, 100).toWellFormed();
    notice({
      reason: `group_${part}_too_long`,
      detail: { event, starts_with: value, limit_characters: LONGEST_GROUP_NAME },
    });
    return false;
  }
  return true;
}

/** The groups that the event names in `$groups`. Entries without a key are left out. */
export function membershipsOf({ event, properties }: CapturedEvent, notice: Notify): Membership[] {
  const { $groups: groups } = properties;
  if (!isObject(groups)) return [];
  const memberships: Membership[] = [];
  for (const type of Object.keys(groups)) {
    const key = asKey(groups[type]);
    if (key === undefined || type.trim() === '') continue;
    if (fits({ type, key }, event, notice)) memberships.push({ type, key });
  }
  return memberships;
}

/** What the event changes in its group. Undefined unless it is a `$groupidentify`. */
export function groupUpdateOf(captured: CapturedEvent, notice: Notify): GroupUpdate | undefined {
  const { event, properties } = captured;
  if (!GROUP_IDENTIFY.has(event) || properties.$process_person_profile === false) return undefined;
  const [type, key] = [asKey(properties.$group_type), asKey(properties.$group_key)];
  if (type === undefined || key === undefined) {
    const missing = type === undefined ? '$group_type' : '$group_key';
    notice({ reason: 'group_identify_incomplete', detail: { distinct_id: captured.distinct_id, missing } });
    return undefined;
  }
  if (!fits({ type, key }, event, notice)) return undefined;
  const { $group_set: set } = properties;
  return { type, key, set: isObject(set) ? set : {}, at: storableTime(captured) };
}
