import { isUuid } from '../../db/uuid.ts';
import { cut } from '../captured-event.ts';
import { elementsChainOf } from '../elements-chain.ts';
import { GROUP_IDENTIFY } from '../persons/groups.ts';

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

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Moves `$set`, `$set_once` and `$unset` from beside the properties into them. Outer values of `$set` and `$set_once`
 * win over inner ones.
 */
export function liftSets(event: Fields, properties: Fields): void {
  for (const name of ['$set', '$set_once'] as const) {
    const outer = event[name];
    if (!isFields(outer)) continue;
    const within = properties[name];
    // A spread copies a key called __proto__ as data. An assignment would not.
    properties[name] = isFields(within) ? { ...within, ...outer } : outer;
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
 * Removes changes of persons from anonymous events and from events about groups. Also removes a mark that the event
 * is not anonymous, since that is the default.
 */
export function limitPersonChanges(event: string, properties: Fields): void {
  const isAnonymous = properties.$process_person_profile === false;
  if (isAnonymous || GROUP_IDENTIFY.has(event)) {
    for (const name of ['$set', '$set_once', '$unset']) {
      if (properties[name] !== undefined) delete properties[name];
    }
  }
  if (!isAnonymous && properties.$process_person_profile !== undefined) {
    // Cheaper than deleting it. JSON leaves out undefined values.
    properties.$process_person_profile = undefined;
  }
}

/** The event's properties, which may be changed in place. Undefined if they are not an object. */
export function readProperties(event: Fields): Fields | undefined {
  const { properties } = event;
  if (properties === undefined || properties === null) return {};
  return isFields(properties) ? properties : undefined;
}

const OPTIONS: Record<string, string> = {
  cookieless_mode: '$cookieless_mode',
  disable_skew_correction: '$ignore_sent_at',
  process_person_profile: '$process_person_profile',
  product_tour_id: '$product_tour_id',
};
const FIELDS: Record<string, string> = { session_id: '$session_id', window_id: '$window_id' };

function fill(properties: Fields, names: Record<string, string>, source: Fields): void {
  for (const [field, property] of Object.entries(names)) {
    const value = source[field];
    if (value !== undefined && value !== null && properties[property] === undefined)
      properties[property] = value;
  }
}

/**
 * Moves options, session and window of the newer form of event into its properties, where the other forms have them.
 * So the stored event does not depend on the form. `sdk` is the header `PostHog-Sdk-Info`, `name/version`.
 */
export function fromV1(event: Fields, sdk: string | undefined): void {
  if (event.properties === undefined || event.properties === null) event.properties = {};
  const properties = event.properties as Fields;
  if (typeof properties !== 'object' || Array.isArray(properties)) return;
  fill(properties, FIELDS, event);
  const { options } = event;
  if (typeof options === 'object' && options !== null) fill(properties, OPTIONS, options as Fields);
  const [name, version] = sdk?.split('/', 2) ?? [];
  if (name) properties.$lib ??= name;
  if (version) properties.$lib_version ??= version;
}
