import type { DefinitionKind } from '../../db/definitions.ts';
import { cleanText } from '../../values/texts.ts';
import type { CapturedEvent } from '../captured-event.ts';
import type { PropertyType } from './property-type.ts';

/** Names that take more bytes have no definition. */
const LONGEST_NAME = 200;
/** So many properties of one event are looked at. */
const MOST_OF_ONE = 1_000;
/** Properties that say what becomes of persons and groups. */
const INSTRUCTIONS = new Set([
  ...['$set', '$set_once', '$unset', '$groups'],
  ...['$group_0', '$group_1', '$group_2', '$group_3', '$group_4'],
]);

/** A name that an event has shown. */
export interface SeenName {
  kind: DefinitionKind;
  /** The type of the groups whose property it is, by its name. Empty: it is none of a group. */
  groupType: string;
  name: string;
  /** What its value tells about the type. */
  type: PropertyType | null;
}

/** Where names are shown to. */
export interface NameSink {
  /** Returns whether the name is news. */
  see(kind: DefinitionKind, groupType: string, name: string, value: unknown): boolean;
}

/**
 * Returns the name as it is stored, in memory of its own: what is cut out of a body would keep the body. Undefined: it is too
 * long.
 */
export function storedName(name: string): string | undefined {
  if (name.length > LONGEST_NAME) return undefined;
  const bytes = Buffer.from(cleanText(name));
  return bytes.length > LONGEST_NAME ? undefined : bytes.toString();
}

/** Tells names apart. */
export const nameKey = ({ kind, groupType, name }: Omit<SeenName, 'type'>): string =>
  `${kind}\0${groupType}\0${name}`;

function showAll(sink: NameSink, kind: DefinitionKind, groupType: string, properties: unknown): number {
  if (typeof properties !== 'object' || properties === null || Array.isArray(properties)) return 0;
  let [shown, news] = [0, 0];
  for (const name in properties) {
    if (shown >= MOST_OF_ONE) break;
    shown += 1;
    if (kind === 'event_property' && INSTRUCTIONS.has(name)) continue;
    const value = (properties as Record<string, unknown>)[name];
    // What is undefined is not stored.
    if (value !== undefined && sink.see(kind, groupType, name, value)) news += 1;
  }
  return news;
}

/** Shows the names of an event's properties, and of what it says about its person or group. Returns how many are news. */
export function showProperties(
  { event, properties }: Pick<CapturedEvent, 'event' | 'properties'>,
  sink: NameSink,
): number {
  if (event === '$groupidentify') {
    const { $group_type: groupType, $group_set: set } = properties;
    return typeof groupType === 'string' ? showAll(sink, 'group_property', groupType, set) : 0;
  }
  return (
    showAll(sink, 'event_property', '', properties) +
    showAll(sink, 'person_property', '', properties.$set) +
    showAll(sink, 'person_property', '', properties.$set_once)
  );
}
