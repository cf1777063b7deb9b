import { isUuid } from '../../db/uuid.ts';
import { cut } from '../captured-event.ts';
import { elementsChainOf } from '../elements-chain.ts';
import { GROUP_IDENTIFY } from '../persons/groups.ts';

type Fields = Record<string, unknown>;

interface NameRead {
  /** Undefined when there is none. */
  text: string | undefined;
  truncated: boolean;
}

const ABSENT: NameRead = { text: undefined, truncated: false };

function asText(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The event's name; anything that is no text is written as JSON. */
export function readName(event: Fields, isEngage: boolean): NameRead {
  const given = event.event;
  const text = asText(given === undefined && isEngage ? '$identify' : given);
  if (text === undefined || text === '') return ABSENT;
  const name = cut(text);
  return { text: name, truncated: name !== text };
}

/** Who did it: of the event, else of its properties. White space alone is nobody. */
export function readDistinctId(event: Fields, properties: Fields): NameRead {
  const own = event.distinct_id ?? event.$distinct_id;
  const text = asText(own ?? properties.distinct_id ?? properties.$distinct_id);
  if (text === undefined || text.trim() === '') return ABSENT;
  const id = cut(text);
  return { text: id, truncated: id !== text };
}

/** Without hyphens, in braces, or as a URN: the same uuid, which a retry may spell as it likes. */
const OTHER_SPELLING =
  /^(?:urn:uuid:|\{)?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})\}?$/i;
/** What a client sends that never set the field: taken for an id, all of its events would be one. */
const NIL = '00000000-0000-0000-0000-000000000000';

/** The client's uuid in lower case and with hyphens; undefined when there is none, false when it is not one. */
export function readUuid(value: unknown): string | undefined | false {
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string') return false;
  const usual = isUuid(value) ? value : OTHER_SPELLING.exec(value.trim())?.slice(1).join('-');
  return usual === undefined || usual === NIL ? false : usual.toLowerCase();
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `$set` and its like may stand next to the properties; what stands there wins over what stands in them. */
export function liftSets(event: Fields, properties: Fields): void {
  for (const name of ['$set', '$set_once'] as const) {
    const outer = event[name];
    if (!isFields(outer)) continue;
    const within = properties[name];
    // A spread copies a key called __proto__ as data, an assignment would not.
    properties[name] = isFields(within) ? { ...within, ...outer } : outer;
  }
  if (event.$unset !== undefined && properties.$unset === undefined) properties.$unset = event.$unset;
}

/** What was clicked is stored as a chain; some clients send it as a list. */
export function chainElements(properties: Fields): void {
  const { $elements: elements, $elements_chain: chain } = properties;
  if (!Array.isArray(elements) || (chain !== undefined && chain !== null && chain !== '')) return;
  delete properties.$elements;
  const written = elementsChainOf(elements);
  if (written !== '') properties.$elements_chain = written;
}

/** An anonymous event changes nobody, nor does one about a group. That it is not anonymous needs no telling. */
export function limitPersonChanges(event: string, properties: Fields): void {
  const isAnonymous = properties.$process_person_profile === false;
  if (isAnonymous || GROUP_IDENTIFY.has(event)) {
    for (const name of ['$set', '$set_once', '$unset']) {
      if (properties[name] !== undefined) delete properties[name];
    }
  }
  if (!isAnonymous && properties.$process_person_profile !== undefined) {
    // Cheaper than taking it out, and JSON has no such value.
    properties.$process_person_profile = undefined;
  }
}

/** The event's properties, to be changed in place; undefined when they are something else. */
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
 * The newer form of an event has outside of its properties what the other forms have inside: puts it back, so that
 * what is stored does not depend on the form. `sdk` is the header `PostHog-Sdk-Info`, `name/version`.
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
