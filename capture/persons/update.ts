import { isDeepStrictEqual } from 'node:util';
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

const isObject = (value: unknown): value is Properties =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

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

/** What the event changes in the person's properties. Undefined if it changes nothing. */
export function changesOf(captured: CapturedEvent, person: Readonly<Properties>): Changes | undefined {
  const { event, properties } = captured;
  if (SILENT.has(event)) return undefined;
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

  const ofServer = properties.$is_server === true;
  const { $set: given, $set_once: givenOnce, $unset: taken } = properties;
  if (isObject(givenOnce)) for (const name of Object.keys(givenOnce)) setOnce(name, givenOnce[name]);
  for (const name in properties) {
    const initial = INITIAL.get(name);
    if (initial === undefined || (ofServer && OF_SERVERS.has(name))) continue;
    const value = properties[name];
    if (value === undefined) continue;
    // No object inherits these names, so `own` is not needed. Nearly always the value is the same as before.
    if (person[name] !== value) setIfNew(name, value);
    if (person[initial] === undefined) setOnce(initial, value);
  }
  if (typeof properties.$geoip_country_code === 'string') {
    for (const name of PLACE) {
      if (properties[name] !== undefined) continue;
      setIfNew(name, null);
      setOnce(INITIAL.get(name) as string, null);
    }
  }
  if (event === 'survey shown') {
    setIfNew('$survey_last_seen_date', new Date(storableTime(captured)).toISOString());
  }
  if (isObject(given)) {
    for (const name of Object.keys(given)) {
      // A value in `$set` wins over a copied one, even if the person has it already.
      if (!same(own(person, name), given[name])) set(name, given[name]);
      else changes?.delete(name);
    }
  }
  const away = Array.isArray(taken) ? taken : isObject(taken) ? Object.keys(taken) : [];
  for (const name of away) {
    if (typeof name !== 'string') continue;
    if (own(person, name) !== undefined) set(name, undefined);
    else changes?.delete(name);
  }
  return changes && changes.size > 0 ? changes : undefined;
}
