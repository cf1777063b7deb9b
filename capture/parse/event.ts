import { isObject } from '../../values/json-object.ts';
import { cut } from '../../values/texts.ts';
import { isUuid } from '../../values/uuid.ts';
import { elementsChainOf } from '../elements-chain.ts';
import { GROUP_IDENTIFY } from '../persons/groups.ts';
import { COOKIELESS_ID } from '../persons/identity.ts';

type Fields = Record<string, unknown>;

interface NameRead {
  /** Undefined if there is none. */
  text: string | undefined;
  truncated: boolean;
}

const ABSENT: NameRead = { text: undefined, truncated: false };

function asText(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The event's name. A value that is not a text is written as JSON. */
export function readName(event: Fields, isEngage: boolean): NameRead {
  const given = event.event;
  const text = asText(given === undefined && isEngage ? '$identify' : given);
  if (text === undefined || text === '') return ABSENT;
  const name = cut(text);
  return { text: name, truncated: name !== text };
}

/** The distinct_id of the event, or else of its properties. White space alone does not count. */
export function readDistinctId(event: Fields, properties: Fields): NameRead {
  const own = event.distinct_id ?? event.$distinct_id;
  const text = asText(own ?? properties.distinct_id ?? properties.$distinct_id);
  if (text === undefined || text.trim() === '') return ABSENT;
  const id = cut(text);
  return { text: id, truncated: id !== text };
}

/** A uuid without hyphens, in braces, or as a URN. A retry may spell the same uuid in another way. */
const OTHER_SPELLING =
  /^(?:urn:uuid:|\{)?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})\}?$/i;
/** Clients send this uuid when they never set the field. As an id, it would make one event of all their events. */
const NIL = '00000000-0000-0000-0000-000000000000';

/** The client's uuid in lower case with hyphens. Undefined if there is none, false if the value is not a uuid. */
export function readUuid(value: unknown): string | undefined | false {
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string') return false;
  const usual = isUuid(value) ? value : OTHER_SPELLING.exec(value.trim())?.slice(1).join('-');
  return usual === undefined || usual === NIL ? false : usual.toLowerCase();
}

/**
 * Moves `$set`, `$set_once` and `$unset` from beside the properties into them. Outer values of `$set` and `$set_once`
 * win over inner ones.
 */
export function liftSets(event: Fields, properties: Fields): void {
  for (const name of ['$set', '$set_once'] as const) {
    const outer = event[name];
    if (!isObject(outer)) continue;
    const within = properties[name];
    // A spread copies a key called __proto__ as data. An assignment would not.
    properties[name] = isObject(within) ? { ...within, ...outer } : outer;
  }
  if (event.$unset !== undefined && properties.$unset === undefined) properties.$unset = event.$unset;
}

/** Replaces a list of elements, which some clients send, by the chain that is stored. */
export function chainElements(properties: Fields): void {
  const { $elements: elements, $elements_chain: chain } = properties;
  if (!Array.isArray(elements) || (chain !== undefined && chain !== null && chain !== '')) return;
  delete properties.$elements;
  const written = elementsChainOf(elements);
  if (written !== '') properties.$elements_chain = written;
}

/**
 * Makes an event anonymous whose distinct_id all browsers share that may not store one of their own. An event about a
 * group names nobody anyway.
 */
export function markCookieless(event: string, distinctId: string, properties: Fields): void {
  if (distinctId === COOKIELESS_ID && !GROUP_IDENTIFY.has(event)) properties.$process_person_profile = false;
}

/**
 * Removes changes of persons from anonymous events and from events about groups. Also removes a mark that the event
 * is not anonymous, since that is the default. Returns a mark that says neither, which is removed too.
 */
export function limitPersonChanges(event: string, properties: Fields): unknown {
  const { $process_person_profile: mark } = properties;
  const isAnonymous = mark === false;
  if (isAnonymous || GROUP_IDENTIFY.has(event)) {
    for (const name of ['$set', '$set_once', '$unset']) {
      if (properties[name] !== undefined) delete properties[name];
    }
  }
  if (isAnonymous || mark === undefined) return undefined;
  // Cheaper than deleting it. JSON leaves out undefined values.
  properties.$process_person_profile = undefined;
  return mark === true || mark === null ? undefined : mark;
}

/** The event's properties, which may be changed in place. Undefined if they are not an object. */
export function readProperties(event: Fields): Fields | undefined {
  const { properties } = event;
  if (properties === undefined || properties === null) return {};
  return isObject(properties) ? properties : undefined;
}
