import { isDeepStrictEqual } from 'node:util';
import { isObject } from '../../values/json-object.ts';
import { type CapturedEvent, storableTime } from '../captured-event.ts';
import { GROUP_IDENTIFY } from './groups.ts';

type Properties = Record<string, unknown>;

/** Event properties that are copied to the person: the latest value, and the first one as `$initial_…`. */
const LIFTED = [
  ...['$app_build', '$app_name', '$app_namespace', '$app_version', '$browser', '$browser_version'],
  ...['$device_type', '$current_url', '$pathname', '$os', '$os_name', '$os_version', '$referring_domain'],
  ...[
    '$referrer',
    '$screen_height',
    '$screen_width',
    '$viewport_height',
    '$viewport_width',
    '$raw_user_agent',
  ],
  ...['utm_source', 'utm_medium', 'utm_campaign', 'utm_content', 'utm_term', 'utm_name'],
  ...['gclid', 'gad_source', 'gclsrc', 'dclid', 'gbraid', 'wbraid', 'fbclid', 'msclkid', 'twclid'],
  ...['li_fat_id', 'mc_cid', 'igshid', 'ttclid', 'rdt_cid', 'epik', 'qclid', 'sccid', 'irclid', '_kx'],
];
/** Properties of a place. They change together, so those that the new place lacks become null. */
const PLACE = [
  ...['$geoip_city_name', '$geoip_country_name', '$geoip_country_code', '$geoip_continent_name'],
  ...['$geoip_continent_code', '$geoip_postal_code', '$geoip_latitude', '$geoip_longitude'],
  ...['$geoip_accuracy_radius', '$geoip_time_zone', '$geoip_subdivision_1_code'],
  ...['$geoip_subdivision_1_name', '$geoip_subdivision_2_code', '$geoip_subdivision_2_name'],
];

const initialOf = (name: string) => `$initial_${name.replace(/^\$/, '')}`;
const INITIAL = new Map([...LIFTED, ...PLACE].map((name) => [name, initialOf(name)]));
/** The properties of an event that change its person, or say how. */
export const CHANGING_PROPERTIES: readonly string[] = [
  ...INITIAL.keys(),
  ...['$set', '$set_once', '$unset', '$is_server'],
];
const OF_SERVERS = new Set(['$os', '$os_version']);
/** Events that never change a person. */
const SILENT = new Set(['$exception', '$$heatmap', ...GROUP_IDENTIFY]);

/** Whether two values from JSON are equal. The order of keys does not count, since Postgres does not keep it. */
function same(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  return isDeepStrictEqual(one, other);
}

/** The object's own property, never an inherited one such as `constructor`. */
export function own(properties: Readonly<Properties>, name: string): unknown {
  return Object.hasOwn(properties, name) ? properties[name] : undefined;
}

/** Sets a property, or removes it if the value is undefined. */
export function put(properties: Properties, name: string, value: unknown): void {
  if (value === undefined) delete properties[name];
  else if (name !== '__proto__') properties[name] = value;
  else
    Object.defineProperty(properties, name, { value, enumerable: true, configurable: true, writable: true });
}

/** Changed properties by name. `undefined` removes a property. */
export type Changes = Map<string, unknown>;

/**
 * What an event changes in a person. A person has two states: the one that is stored, and the one that its events show. The
 * second has the latest copied values too, which are carried into the first later (capture/carry.ts).
 */
export interface Effect {
  /** Changes of what events show. */
  shown: Changes | undefined;
  /** Changes of what is stored, in the transaction of the event: all but later values of copied properties. */
  stored: Changes | undefined;
  /** Properties that are copied from events otherwise, and that this event sets or removes by name. */
  named: readonly string[];
}

const NONE: readonly string[] = [];

/** Returns what the event changes. Undefined if it changes nothing. */
export function effectOf(
  captured: CapturedEvent,
  shown: Readonly<Properties>,
  stored: Readonly<Properties>,
): Effect | undefined {
  const { event, properties } = captured;
  if (SILENT.has(event)) return undefined;
  const changes = changesOf(captured, shown, false);
  const { $set: given, $set_once: givenOnce, $unset: taken } = properties;
  const asks = isObject(given) || isObject(givenOnce) || taken !== undefined || event === 'survey shown';
  // First values are stored at once, so what is stored has the same names as what is shown.
  if (!asks && !(changes && hasFirst(changes, shown))) {
    return changes && { shown: changes, stored: undefined, named: NONE };
  }
  const named = asks ? namedBy(properties, stored) : NONE;
  const kept = changesOf(captured, stored, true);
  if (!changes && !kept && named.length === 0) return undefined;
  return { shown: changes, stored: kept, named };
}

/** Whether a name is among the changes that the person does not have yet. */
function hasFirst(changes: Changes, person: Readonly<Properties>): boolean {
  for (const name of changes.keys()) if (!Object.hasOwn(person, name)) return true;
  return false;
}

/** The names that `$unset` has. */
function unsetOf(taken: unknown): readonly unknown[] {
  return Array.isArray(taken) ? taken : isObject(taken) ? Object.keys(taken) : NONE;
}

/** Which copied properties the event sets or removes by name, even if they have that value already. */
function namedBy({ $set, $set_once, $unset }: Properties, person: Readonly<Properties>): string[] {
  const named = new Set<string>();
  const add = (name: unknown) => {
    if (typeof name === 'string' && INITIAL.has(name)) named.add(name);
  };
  if (isObject($set)) for (const name of Object.keys($set)) add(name);
  if (isObject($set_once)) {
    for (const name of Object.keys($set_once)) if (own(person, name) === undefined) add(name);
  }
  for (const name of unsetOf($unset)) add(name);
  return [...named];
}

/**
 * Returns what the event changes in these properties. With `isStored`, without new values of copied properties that the person
 * has already.
 */
function changesOf(
  { event, properties, timestamp, received_at }: CapturedEvent,
  person: Readonly<Properties>,
  isStored: boolean,
): Changes | undefined {
  let changes: Changes | undefined;
  const set = (name: string, value: unknown) => {
    changes ??= new Map();
    changes.set(name, value);
  };
  const setIfNew = (name: string, value: unknown) => {
    if (!same(own(person, name), value)) set(name, value);
  };
  const setOnce = (name: string, value: unknown) => {
    if (own(person, name) === undefined && !changes?.has(name)) set(name, value);
  };
  const isLater = (name: string, initial: string) =>
    isStored && own(person, name) !== undefined && own(person, initial) !== undefined;

  const ofServer = properties.$is_server === true;
  const { $set: given, $set_once: givenOnce, $unset: taken } = properties;
  if (isObject(givenOnce)) for (const name of Object.keys(givenOnce)) setOnce(name, givenOnce[name]);
  for (const name in properties) {
    const initial = INITIAL.get(name);
    if (initial === undefined || (ofServer && OF_SERVERS.has(name)) || isLater(name, initial)) continue;
    const value = properties[name];
    if (value === undefined) continue;
    // No object inherits these names, so `own` is not needed. Nearly always the value is the same as before.
    if (person[name] !== value) setIfNew(name, value);
    if (person[initial] === undefined) setOnce(initial, value);
  }
  if (typeof properties.$geoip_country_code === 'string') {
    for (const name of PLACE) {
      const initial = INITIAL.get(name) as string;
      if (properties[name] !== undefined || isLater(name, initial)) continue;
      setIfNew(name, null);
      setOnce(initial, null);
    }
  }
  if (event === 'survey shown') {
    const at = storableTime({ timestamp, received_at });
    setIfNew('$survey_last_seen_date', new Date(at).toISOString());
  }
  if (isObject(given)) {
    for (const name of Object.keys(given)) {
      // A value in `$set` wins over a copied one, even if the person has it already.
      if (!same(own(person, name), given[name])) set(name, given[name]);
      else changes?.delete(name);
    }
  }
  for (const name of unsetOf(taken)) {
    if (typeof name !== 'string') continue;
    if (own(person, name) !== undefined) set(name, undefined);
    else changes?.delete(name);
  }
  return changes && changes.size > 0 ? changes : undefined;
}

/** Events from which nothing is ever copied. */
export const SILENT_EVENTS: readonly string[] = [...SILENT];
/** The properties that decide what is copied from an event. */
export const COPIED_PROPERTIES: readonly string[] = [
  ...CHANGING_PROPERTIES.filter((name) => name !== '$set_once'),
];

/** Returns what is copied from a stored event into its person. Undefined if it is nothing. */
export function copiedOf(properties: Readonly<Properties>): Record<string, unknown> | undefined {
  const ofServer = properties.$is_server === true;
  const { $set: given, $unset: taken } = properties;
  let copied: Record<string, unknown> | undefined;
  for (const name in properties) {
    if (!INITIAL.has(name) || (ofServer && OF_SERVERS.has(name))) continue;
    copied ??= {};
    copied[name] = properties[name];
  }
  if (!copied) return undefined;
  if (typeof properties.$geoip_country_code === 'string') {
    for (const name of PLACE) if (properties[name] === undefined) copied[name] = null;
  }
  // What the event says by name wins, and was stored with the event.
  if (isObject(given)) for (const name of Object.keys(given)) delete copied[name];
  for (const name of unsetOf(taken)) if (typeof name === 'string') delete copied[name];
  return copied;
}
